#include "kernels/workspace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <list>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/internal/loss.hpp"
#include "kernels/internal/network.hpp"
#include "kernels/internal/pass_memory.hpp"
#include "kernels/internal/recorded_pass.hpp"

namespace troupe::kernels {

namespace {

// Networks of so many batch sizes are kept: a job's batch, its last and smaller one, evaluation.
constexpr std::size_t kNetworksKept = 5;
// Samples of one pass of evaluate and predict: enough to be fast, small enough for the cache; and
// rows of logits, of which a sample may have many.
constexpr std::int64_t kEvaluationBatch = 128;
constexpr std::int64_t kEvaluationRows = 2048;

/// What a byte of an image becomes.
using PixelTable = std::array<float, 256>;

/// One table for all channels, or one for each.
std::vector<PixelTable> pixel_tables(const WorkspaceOptions& options) {
  const auto of_channel = [](const std::vector<float>& values, std::size_t channel) {
    return values.size() == 1 ? values[0] : values[channel];
  };
  std::vector<PixelTable> tables(
      std::max(options.input_mean.size(), options.input_deviation.size()));
  for (std::size_t channel = 0; channel < tables.size(); ++channel)
    for (std::size_t value = 0; value < tables[channel].size(); ++value)
      tables[channel][value] =
          (static_cast<float>(value) / 255.0f - of_channel(options.input_mean, channel)) /
          of_channel(options.input_deviation, channel);
  return tables;
}

/// Whether a mean, or a deviation, is there for all channels or for each.
Status check_channels(const char* field, const std::vector<float>& values, const Model& model) {
  const Shape& input = model.input();
  const auto channels = input.rank() == 0 ? std::size_t{1} : static_cast<std::size_t>(input[0]);
  if (values.size() == 1 || values.size() == channels) return {};
  return {Code::invalid_argument,
          fmt::format("{} has {} numbers, but model '{}' takes {}; give one, or one for each of "
                      "the {} channels",
                      field, values.size(), model.name(), to_string(input), channels)};
}

}  // namespace

Status WorkspaceOptions::validate() const {
  constexpr int kMaxThreads = 1024;
  if (threads < 1 || threads > kMaxThreads)
    return {Code::invalid_argument,
            fmt::format("threads is {}, but must be 1 to {}", threads, kMaxThreads)};
  for (const float mean : input_mean)
    if (!std::isfinite(mean))
      return {Code::invalid_argument,
              fmt::format("input_mean is {}, but must be a finite number", mean)};
  for (const float deviation : input_deviation)
    if (!(deviation > 0.0f && std::isfinite(deviation)))
      return {Code::invalid_argument,
              fmt::format("input_deviation is {}, but must be above 0", deviation)};
  if (!(label_smoothing >= 0.0f && label_smoothing < 1.0f))
    return {
        Code::invalid_argument,
        fmt::format("label_smoothing is {}, but must be at least 0 and below 1", label_smoothing)};
  if (precision == DType::u8 || precision == DType::i32)
    return {Code::invalid_argument,
            fmt::format("precision is {}, but must be f32, bf16 or f16", to_string(precision))};
  TROUPE_TRY(device.backend().check_precision(precision));
  if (loss != Loss::softmax_cross_entropy && (label_smoothing != 0.0f || ignored_label))
    return {Code::invalid_argument,
            fmt::format("{} is set, but the loss is {}; only softmax_cross_entropy has it",
                        ignored_label ? "ignored_label" : "label_smoothing", to_string(loss))};
  return {};
}

struct Workspace::State {
  State(Model the_model, WorkspaceOptions the_options, std::unique_ptr<LossFunction> the_loss,
        PassMemory the_memory)
      : model(std::move(the_model)),
        options(std::move(the_options)),
        loss(std::move(the_loss)),
        pixels(pixel_tables(options)),
        memory(std::move(the_memory)) {}

  struct Cached {
    std::int64_t batch;
    Mode mode;
    Network network;
    RecordedPass pass;
  };

  Status check_parameters(const Weights& parameters) const;
  Status check_input(const Tensor& input) const;
  Status check_images(const Tensor& images) const;
  Status check_ids(const Tensor& ids) const;
  std::int64_t evaluation_batch() const {
    return std::clamp<std::int64_t>(kEvaluationRows / model.labels_per_sample(), 1,
                                    kEvaluationBatch);
  }
  Result<Cached*> network(std::int64_t batch, Mode mode);
  /// Writes the samples from `first` on as `net` takes them.
  void load(const Tensor& images, std::int64_t first, Network& net, std::byte* to) const;
  /// Those from `first` on, on their way to the network's input.
  Status send_samples(Network& net, const Tensor& images, std::int64_t first);
  Status run_step(Cached& entry, const Weights& parameters, const Tensor& images,
                  std::span<float> gradients, const StepOptions& step);
  Status run_evaluation(const Weights& parameters, const Tensor& images, LossStats& stats);
  Status run_prediction(const Weights& parameters, const Tensor& images, std::span<float> out);
  /// The same status, with nothing under way.
  Status settled(Status status) {
    if (!status.ok()) (void)memory.settle();
    return status;
  }

  Model model;
  WorkspaceOptions options;
  std::unique_ptr<LossFunction> loss;
  std::vector<PixelTable> pixels;  ///< one, or one a channel
  PassMemory memory;
  PassStatistics statistics;
  std::list<Cached> cached;  ///< last used first
};

Status Workspace::State::check_parameters(const Weights& parameters) const {
  if (!parameters.model().same_layout(model))
    return {Code::shape_mismatch,
            fmt::format("parameters of model '{}' given to a workspace of another model, '{}'",
                        parameters.model().name(), model.name())};
  const Backend* const there = parameters.backend();
  if (there != nullptr && there != &options.device.backend())
    return {Code::invalid_argument,
            fmt::format("weights of model '{}' are in the memory of {}, but the workspace computes "
                        "on {}; open the device once, and give it to both",
                        model.name(), to_string(there->name()), to_string(options.device.name()))};
  return {};
}

Status Workspace::State::check_input(const Tensor& input) const {
  return model.input_dtype() == DType::i32 ? check_ids(input) : check_images(input);
}

Status Workspace::State::check_ids(const Tensor& ids) const {
  const Shape& shape = ids.shape();
  if (shape.rank() == 0 || shape.without_first() != model.input() || shape[0] == 0 ||
      ids.dtype() != DType::i32)
    return {Code::shape_mismatch,
            fmt::format("model '{}' needs token ids i32 [batch] + {} with a batch of at least 1, "
                        "not {}",
                        model.name(), to_string(model.input()), describe(ids))};
  const std::int64_t vocabulary = model.vocabulary();
  const auto values = ids.data<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] < 0 || values[i] >= vocabulary) {
      const auto sample = static_cast<std::size_t>(model.input().elements());
      return {Code::invalid_argument,
              fmt::format("token {} of sample {} is {}, but model '{}' has a vocabulary of 0 to {}",
                          i % sample, i / sample, values[i], model.name(), vocabulary - 1)};
    }
  return {};
}

Status Workspace::State::check_images(const Tensor& images) const {
  const Shape& shape = images.shape();
  const Shape& want = model.input();
  const bool fits =
      shape.rank() > 0 &&
      (shape.without_first() == want ||
       (want.rank() == 3 && want[0] == 1 && shape.without_first() == want.without_first()));
  if (!fits || shape[0] == 0 || (images.dtype() != DType::u8 && images.dtype() != DType::f32))
    return {Code::shape_mismatch,
            fmt::format("model '{}' needs images u8 or f32 [batch] + {} with a batch of at least "
                        "1, not {}",
                        model.name(), to_string(want), describe(images))};
  return {};
}

Result<Workspace::State::Cached*> Workspace::State::network(std::int64_t batch, Mode mode) {
  const auto found = std::ranges::find_if(
      cached, [&](const auto& entry) { return entry.batch == batch && entry.mode == mode; });
  if (found != cached.end()) {
    cached.splice(cached.begin(), cached, found);
    return &cached.front();
  }
  if (cached.size() == kNetworksKept) cached.pop_back();
  TROUPE_ASSIGN(Network created,
                Network::create(model, batch,
                                {options.device, options.kernels, options.threads, mode, false,
                                 &memory.stream(), options.precision}));
  RecordedPass pass(created.can_be_recorded(), statistics);
  cached.push_front({batch, mode, std::move(created), std::move(pass)});
  return &cached.front();
}

void Workspace::State::load(const Tensor& images, std::int64_t first, Network& net,
                            std::byte* to) const {
  const std::size_t count = net.input().size();
  const auto skip = static_cast<std::size_t>(first * model.input().elements());
  if (images.dtype() != DType::u8) {
    // Numbers and token ids are taken as they are, and are as large.
    std::memcpy(to, images.bytes().data() + skip * sizeof(float), count * sizeof(float));
    return;
  }
  const std::span<float> input{reinterpret_cast<float*>(to), count};
  const auto bytes = images.data<std::uint8_t>().subspan(skip, count);
  // Samples and their channels lie one after the other.
  const auto channels = pixels.size() == 1 ? 1 : static_cast<std::size_t>(model.input()[0]);
  const std::size_t plane = static_cast<std::size_t>(model.input().elements()) / channels;
  for (std::size_t begin = 0, at = 0; begin < count; begin += plane, ++at) {
    const PixelTable& table = pixels[at % channels];
    for (std::size_t i = begin; i < begin + plane; ++i) input[i] = table[bytes[i]];
  }
}

Status Workspace::State::send_samples(Network& net, const Tensor& images, std::int64_t first) {
  TROUPE_ASSIGN(std::byte* const staged, memory.stage_input(net));
  load(images, first, net, staged);
  return memory.send_input(net);
}

Status Workspace::State::run_step(Cached& entry, const Weights& parameters, const Tensor& images,
                                  std::span<float> gradients, const StepOptions& step) {
  Network& net = entry.network;
  TROUPE_ASSIGN(const float* const weights, memory.send_parameters(parameters));
  TROUPE_ASSIGN(float* const to, memory.begin_gradients(gradients));
  TROUPE_ASSIGN(const std::byte* const labels, memory.send_labels(*loss));
  TROUPE_ASSIGN(const PassValues* const values, memory.send_values(step));
  TROUPE_TRY(send_samples(net, images, 0));
  const auto pass = [&](const GradientEnqueued& enqueued) -> Status {
    TROUPE_TRY(net.forward(weights, &values->key, step.sum_over_ranks));
    TROUPE_TRY(memory.enqueue_loss(net, *loss, labels, images.shape()[0], &values->loss_scale));
    return net.backward(weights, to, enqueued, step.sum_over_ranks);
  };
  if (options.device.backend().is_host()) {
    // Final when said so.
    GradientEnqueued enqueued;
    if (step.ready)
      enqueued = [&](const ParameterInfo& parameter) {
        step.ready(parameter);
        return Status();
      };
    return pass(enqueued);
  }
  TROUPE_TRY(entry.pass.enqueue(memory, {weights, to, labels}, pass));
  TROUPE_TRY(memory.bring_loss());
  return memory.deliver_gradients(step.ready);
}

Status Workspace::State::run_evaluation(const Weights& parameters, const Tensor& images,
                                        LossStats& stats) {
  const std::int64_t samples = images.shape()[0];
  const std::int64_t most = evaluation_batch();
  TROUPE_ASSIGN(const float* const weights, memory.send_parameters(parameters));
  TROUPE_ASSIGN(const std::byte* const labels, memory.send_labels(*loss));
  for (std::int64_t first = 0; first < samples; first += most) {
    const std::int64_t batch = std::min(most, samples - first);
    TROUPE_ASSIGN(Cached* const entry, network(batch, Mode::inference));
    Network& net = entry->network;
    TROUPE_TRY(send_samples(net, images, first));
    TROUPE_TRY(net.forward(weights));
    TROUPE_TRY(memory.enqueue_loss(
        net, *loss, labels + static_cast<std::size_t>(first) * loss->bytes_per_sample(), batch,
        nullptr));
    TROUPE_TRY(memory.bring_loss());
    TROUPE_TRY(memory.settle());
    stats += memory.loss();
  }
  return {};
}

Status Workspace::State::run_prediction(const Weights& parameters, const Tensor& images,
                                        std::span<float> out) {
  const std::int64_t samples = images.shape()[0];
  const std::int64_t most = evaluation_batch();
  TROUPE_ASSIGN(const float* const weights, memory.send_parameters(parameters));
  for (std::int64_t first = 0; first < samples; first += most) {
    const std::int64_t batch = std::min(most, samples - first);
    TROUPE_ASSIGN(Cached* const entry, network(batch, Mode::inference));
    Network& net = entry->network;
    TROUPE_TRY(send_samples(net, images, first));
    TROUPE_TRY(net.forward_to(weights, out.data()));
    TROUPE_TRY(memory.settle());
    out = out.subspan(net.output().size());
  }
  return {};
}

Workspace::Workspace(std::unique_ptr<State> state) : state_(std::move(state)) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;

const Model& Workspace::model() const noexcept {
  return state_->model;
}
const WorkspaceOptions& Workspace::options() const noexcept {
  return state_->options;
}

const PassStatistics& Workspace::statistics() const noexcept {
  return state_->statistics;
}

Result<Workspace> Workspace::create(Model model, WorkspaceOptions options) {
  TROUPE_TRY(options.validate());
  TROUPE_ASSIGN(auto loss, make_loss(model, options));
  TROUPE_TRY(check_channels("input_mean", options.input_mean, model));
  TROUPE_TRY(check_channels("input_deviation", options.input_deviation, model));
  TROUPE_ASSIGN(auto memory, PassMemory::create(options.device, model));
  return Workspace(std::make_unique<State>(std::move(model), std::move(options), std::move(loss),
                                           std::move(memory)));
}

Result<LossStats> Workspace::forward_backward(const Weights& weights, const Tensor& given,
                                              const Tensor& given_labels,
                                              std::span<float> gradients, const StepOptions& step) {
  TROUPE_TRY(state_->check_parameters(weights));
  TROUPE_ASSIGN(const Tensor images, given.contiguous());
  TROUPE_TRY(state_->check_input(images));
  const std::int64_t batch = images.shape()[0];
  TROUPE_ASSIGN(const Tensor labels, given_labels.contiguous());
  TROUPE_TRY(state_->loss->read(labels, batch));
  if (gradients.size() != model().flat_size())
    return Error{Code::shape_mismatch,
                 fmt::format("gradients of model '{}' take {} floats, but {} were given",
                             model().name(), model().flat_size(), gradients.size())};
  if (!step.sum_over_ranks && rank_sums(model()).calls > 0)
    return Error{Code::failed_precondition,
                 fmt::format("model '{}' has synchronized batch norms, whose passes need "
                             "StepOptions::sum_over_ranks",
                             model().name())};
  TROUPE_ASSIGN(State::Cached* const entry, state_->network(batch, Mode::training));
  TROUPE_TRY(state_->settled(state_->run_step(*entry, weights, images, gradients, step)));
  return state_->memory.loss();
}

Result<LossStats> Workspace::evaluate(const Weights& weights, const Tensor& given,
                                      const Tensor& given_labels) {
  TROUPE_TRY(state_->check_parameters(weights));
  TROUPE_ASSIGN(const Tensor images, given.contiguous());
  TROUPE_TRY(state_->check_input(images));
  const std::int64_t samples = images.shape()[0];
  TROUPE_ASSIGN(const Tensor labels, given_labels.contiguous());
  TROUPE_TRY(state_->loss->read(labels, samples));
  LossStats stats;
  TROUPE_TRY(state_->settled(state_->run_evaluation(weights, images, stats)));
  return stats;
}

Result<Tensor> Workspace::predict(const Weights& weights, const Tensor& given) {
  TROUPE_TRY(state_->check_parameters(weights));
  TROUPE_ASSIGN(const Tensor images, given.contiguous());
  TROUPE_TRY(state_->check_input(images));
  const std::int64_t samples = images.shape()[0];
  TROUPE_ASSIGN(Tensor logits, Tensor::allocate(DType::f32, model().output().with_first(samples)));
  TROUPE_TRY(state_->settled(state_->run_prediction(weights, images, logits.data<float>())));
  return logits;
}

}  // namespace troupe::kernels
