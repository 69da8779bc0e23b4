#include "kernels/internal/network.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace troupe::kernels {

namespace {

using Layout = Activation::Layout;

struct OperationOf {
  Mode mode;
  Operation operator()(const Convolution&) const { return Operation::convolution; }
  Operation operator()(const Linear&) const { return Operation::linear; }
  Operation operator()(const BatchNorm& spec) const {
    return spec.synchronized && mode == Mode::training ? Operation::synchronized_batch_norm
                                                       : Operation::batch_norm;
  }
  Operation operator()(const Relu&) const { return Operation::relu; }
  Operation operator()(const Pooling& spec) const {
    return spec.kind == Pooling::Kind::max ? Operation::max_pooling : Operation::average_pooling;
  }
  Operation operator()(const AdaptivePooling&) const { return Operation::adaptive_pooling; }
  Operation operator()(const GlobalAveragePooling&) const { return Operation::average_pooling; }
  Operation operator()(const Flatten&) const { return Operation::alias; }
  Operation operator()(const Reshape&) const { return Operation::alias; }
  Operation operator()(const Add&) const { return Operation::add; }
  Operation operator()(const Embedding&) const { return Operation::embedding; }
  Operation operator()(const PositionEmbedding&) const { return Operation::position_embedding; }
  Operation operator()(const LayerNorm&) const { return Operation::layer_norm; }
  Operation operator()(const RmsNorm&) const { return Operation::rms_norm; }
  Operation operator()(const GroupNorm&) const { return Operation::group_norm; }
  Operation operator()(const Gelu&) const { return Operation::gelu; }
  Operation operator()(const Silu&) const { return Operation::silu; }
  Operation operator()(const Sigmoid&) const { return Operation::sigmoid; }
  Operation operator()(const Tanh&) const { return Operation::tanh; }
  Operation operator()(const Concat&) const { return Operation::concat; }
  Operation operator()(const Dropout&) const { return Operation::dropout; }
  Operation operator()(const Attention&) const { return Operation::attention; }
  Operation operator()(const Lstm&) const { return Operation::lstm; }
  Operation operator()(const Custom&) const { return Operation::custom; }
};

Operation operation_of(const Layer& layer, Mode mode) {
  return std::visit(OperationOf{mode}, layer.spec);
}

/// Layers one after the other that one kernel may compute; the longest are tried first.
struct Fusion {
  Operation fused;
  std::array<Operation, 4> layers;
  std::size_t count;
};
constexpr Fusion kFusions[] = {
    {Operation::convolution_relu_max_pooling,
     {Operation::convolution, Operation::relu, Operation::max_pooling},
     3},
    {Operation::convolution_batch_norm_add_relu,
     {Operation::convolution, Operation::batch_norm, Operation::add, Operation::relu},
     4},
    {Operation::convolution_batch_norm_relu,
     {Operation::convolution, Operation::batch_norm, Operation::relu},
     3},
    {Operation::convolution_batch_norm, {Operation::convolution, Operation::batch_norm}, 2},
    {Operation::convolution_relu, {Operation::convolution, Operation::relu}, 2},
    {Operation::linear_gelu, {Operation::linear, Operation::gelu}, 2},
    {Operation::batch_norm_relu, {Operation::batch_norm, Operation::relu}, 2},
    {Operation::synchronized_batch_norm_relu,
     {Operation::synchronized_batch_norm, Operation::relu},
     2},
    {Operation::add_relu, {Operation::add, Operation::relu}, 2},
};

/// The same elements under another shape.
class Alias final : public LayerKernel {
public:
  Alias(const Activation& input, const Shape& output) {
    inputs_ = {input};
    output_ = input;
    output_.shape = output;
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false,
            .backward_reads_output = false,
            .passes_gradient = true,
            .alias = true};
  }
  Status forward(const ForwardPass&) override { return {}; }
  Status backward(const BackwardPass&) override { return {}; }
};

}  // namespace

/// Adds steps, and reorders between them.
struct Network::Builder {
  Network& network;
  const NetworkOptions& options;
  std::int64_t batch;
  std::vector<std::size_t> consumers;  ///< of each of the model's values
  std::vector<std::size_t> value_of;   ///< the model's value -> ours
  std::vector<bool> has_step = std::vector<bool>(network.model_.parameters().size());
  /// Values that were reordered before, by the layout that was wanted.
  std::vector<std::pair<std::size_t, std::size_t>> reordered = {};

  Builder(Network& the_network, const NetworkOptions& the_options, std::int64_t the_batch)
      : network(the_network), options(the_options), batch(the_batch) {
    const auto layers = network.model_.layers();
    consumers.resize(layers.size() + 1);
    value_of.resize(layers.size() + 1);
    for (const Layer& layer : layers)
      for (const std::size_t value : layer.from) ++consumers[value];
  }

  bool matches(const Fusion& fusion, std::size_t index) const {
    const auto layers = network.model_.layers();
    if (index + fusion.count > layers.size()) return false;
    for (std::size_t i = 0; i < fusion.count; ++i) {
      if (operation_of(layers[index + i], options.mode) != fusion.layers[i]) return false;
      if (i == 0) continue;
      // What is between two of them belongs to nobody else. Only a sum takes something besides.
      const auto& from = layers[index + i].from;
      if (std::ranges::count(from, index + i) != 1 || consumers[index + i] != 1 ||
          (from.size() != 1 && fusion.layers[i] != Operation::add))
        return false;
    }
    return true;
  }

  /// The model's values that a run of layers takes: the first one's, and then what comes besides.
  std::vector<std::size_t> inputs_of(std::span<const Layer> layers) const {
    const auto index = static_cast<std::size_t>(layers.data() - network.model_.layers().data());
    std::vector<std::size_t> inputs = layers[0].from;
    for (const Layer& layer : layers.subspan(1))
      for (const std::size_t value : layer.from)
        if (value <= index) inputs.push_back(value);
    return inputs;
  }

  MadeKernel make(Operation operation, std::span<const Layer> layers,
                  DType dtype = DType::f32) const {
    std::vector<KernelInput> inputs;
    for (const std::size_t value : inputs_of(layers)) {
      const Value& ours = network.values_[value_of[value]];
      inputs.push_back({ours.activation, ours.wants_gradient});
    }
    if (operation == Operation::alias) {
      // Only a matter of names, unless the channels are blocked.
      const Activation& input = inputs[0].activation;
      return MadeKernel(std::make_unique<Alias>(
          input.layout == Layout::blocked ? plain_activation(input.shape) : input,
          layers[0].output.with_first(batch)));
    }
    return network.backend().make_kernel(operation, dtype,
                                         {network.model_, layers, inputs, options.mode,
                                          options.choice, options.threads, *network.scratch_});
  }

  /// Adds the kernel for the layer at `index`, or for a run that starts there; gives how many.
  Result<std::size_t> add_layer(std::size_t index) {
    const auto rest = network.model_.layers().subspan(index);
    std::unique_ptr<LayerKernel> kernel;
    std::size_t used = 1;
    if (options.precision != DType::f32) {
      TROUPE_ASSIGN(kernel,
                    make(operation_of(rest[0], options.mode), rest.first(1), options.precision));
    }
    for (const Fusion& fusion : kFusions) {
      if (kernel != nullptr || !matches(fusion, index)) continue;
      used = fusion.count;
      TROUPE_ASSIGN(kernel, make(fusion.fused, rest.first(used)));
    }
    if (kernel == nullptr) {
      used = 1;
      TROUPE_ASSIGN(kernel, make(operation_of(rest[0], options.mode), rest.first(1)));
    }
    if (kernel == nullptr)
      return Error{Code::not_supported,
                   fmt::format("{}: no kernel for f32 on device {}{}", describe(rest[0].spec),
                               to_string(options.device.name()),
                               options.choice == KernelChoice::portable
                                   ? " among the portable ones; let the library compute it"
                                   : "")};
    std::vector<std::size_t> inputs;
    const std::vector<std::size_t> taken = inputs_of(rest.first(used));
    for (std::size_t i = 0; i < taken.size(); ++i) {
      TROUPE_ASSIGN(const std::size_t value, reorder(value_of[taken[i]], kernel->inputs()[i]));
      inputs.push_back(value);
    }
    value_of[index + used] = add_step(std::move(kernel), std::move(inputs), rest.first(used));
    return used;
  }

  /// The value in the layout of `to`.
  Result<std::size_t> reorder(std::size_t value, const Activation& to) {
    const auto lies = [&](std::size_t x) {
      return lie_alike(network.backend(), network.values_[x].activation, to);
    };
    if (lies(value)) return value;
    for (const auto& [from, made] : reordered)
      if (from == value && lies(made)) return made;
    const Activation from = network.values_[value].activation;
    // Between two layouts of which neither is plain, in two steps.
    if (from.layout != Layout::plain && to.layout != Layout::plain && from.layout != to.layout) {
      TROUPE_ASSIGN(const std::size_t plain, reorder(value, plain_activation(from.shape)));
      return reorder(plain, to);
    }
    TROUPE_ASSIGN(auto kernel,
                  network.backend().make_reorder(from, to, options.threads, *network.scratch_));
    const std::size_t made = add_step(std::move(kernel), {value}, {});
    reordered.emplace_back(value, made);
    return made;
  }

  std::size_t add_step(std::unique_ptr<LayerKernel> kernel, std::vector<std::size_t> inputs,
                       std::span<const Layer> layers) {
    Step step;
    for (const Layer& layer : layers)
      for (const std::size_t index : layer.parameters) {
        if (network.model_.parameters()[index].kind != ParameterKind::trained) continue;
        step.trained = true;
        // Of a parameter that earlier layers have too, theirs is added later.
        if (!has_step[index]) step.completes.push_back(index);
        has_step[index] = true;
      }
    std::ranges::sort(step.completes, std::greater<>());
    Value value{kernel->output(), step.trained, 0, {}};
    for (const std::size_t input : inputs)
      value.wants_gradient = value.wants_gradient || network.values_[input].wants_gradient;
    step.kernel = std::move(kernel);
    step.inputs = std::move(inputs);
    step.output = network.values_.size();
    network.values_.push_back(std::move(value));
    network.steps_.push_back(std::move(step));
    return network.values_.size() - 1;
  }
};

Result<Network> Network::create(const Model& model, std::int64_t batch,
                                const NetworkOptions& options) {
  Network network(model, options);
  if (options.stream == nullptr) {
    TROUPE_ASSIGN(network.own_stream_, network.backend().make_stream());
    network.options_.stream = network.own_stream_.get();
  }
  network.values_.push_back(
      {plain_activation(model.input().with_first(batch)), options.input_gradient, 0, {}});
  Builder builder(network, options, batch);
  for (std::size_t index = 0; index < model.layers().size();) {
    TROUPE_ASSIGN(const std::size_t used, builder.add_layer(index));
    index += used;
  }
  const std::size_t last = builder.value_of.back();
  TROUPE_ASSIGN(network.output_,
                builder.reorder(last, plain_activation(network.values_[last].activation.shape)));
  TROUPE_TRY(network.plan());
  return network;
}

Status Network::plan() {
  plan_forward();
  if (options_.mode == Mode::training) plan_backward();
  arena_.place();
  TROUPE_ASSIGN(memory_, backend().allocate(std::max<std::size_t>(arena_.size(), 1)));
  TROUPE_ASSIGN(Buffer scratch, backend().allocate_scratch(scratch_->reserved()));
  scratch_->take(std::move(scratch));
  TROUPE_TRY(allocate_rank_sums());
  // Lanes and channels that only fill up a block are read, if never used.
  return options_.stream->zero(memory_.data(), memory_.size());
}

Status Network::allocate_rank_sums() {
  std::size_t most = 0;
  for (const Step& step : steps_) most = std::max(most, step.kernel->sums_over_ranks());
  if (most == 0) return {};
  TROUPE_ASSIGN(rank_sums_, backend().allocate(most * sizeof(double)));
  if (backend().is_host()) return {};
  TROUPE_ASSIGN(staged_sums_, backend().allocate_staging(2 * most * sizeof(double)));
  return {};
}

/// Events: 0 the input is written, i + 1 step i forward, n + 1 the output is read, and then the
/// backward pass.
void Network::plan_forward() {
  const auto bytes = [&](std::size_t value) {
    return values_[value].activation.floats * sizeof(float);
  };
  std::vector<std::size_t> consumers(values_.size());
  for (const Step& step : steps_)
    for (const std::size_t input : step.inputs) ++consumers[input];
  std::vector<std::size_t> last_read(values_.size());  // the last step that does
  for (std::size_t i = 0; i < steps_.size(); ++i)
    for (const std::size_t input : steps_[i].inputs) last_read[input] = i;
  last_read[output_] = steps_.size();
  values_[0].block = arena_.add(bytes(0), 0);
  // Whether nothing after step `i` reads what is in the block of `value`, under whatever name.
  const auto is_last_reader = [&](std::size_t i, std::size_t value) {
    for (std::size_t other = 0; other < steps_[i].output; ++other)
      if (values_[other].block == values_[value].block && last_read[other] > i) return false;
    return true;
  };
  std::vector<bool> kept(values_.size());  // by the backward pass of what wrote it
  kept[0] = true;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const KernelTraits traits = step.kernel->traits();
    const bool training = options_.mode == Mode::training;
    const std::size_t input = step.inputs[training || !traits.in_place ? 0 : traits.in_place_input];
    const bool overwrites =
        traits.in_place && input != 0 &&
        (training ? consumers[input] == 1 && !kept[input] && !traits.backward_reads_input
                  : is_last_reader(i, input));
    Value& output = values_[step.output];
    output.block =
        overwrites || traits.alias ? values_[input].block : arena_.add(bytes(step.output), i + 1);
    // A name for another's memory is as precious as that.
    kept[step.output] = (traits.alias && (kept[input] || consumers[input] > 1)) ||
                        (training && traits.backward_reads_output);
    for (const std::size_t from : step.inputs) arena_.use(values_[from].block, i + 1);
    arena_.use(output.block, i + 1);
  }
  arena_.use(values_[output_].block, steps_.size() + 1);
}

void Network::plan_backward() {
  const std::size_t n = steps_.size();
  std::vector<Block> gradient(values_.size());
  std::vector<std::size_t> holders;  // values whose gradient is in the block, not yet read
  const auto hold = [&](std::size_t block) {
    holders.resize(std::max(holders.size(), block + 1));
    ++holders[block];
  };
  const auto fresh = [&](std::size_t value, std::size_t time) {
    return arena_.add(values_[value].activation.floats * sizeof(float), time);
  };
  gradient[output_] = fresh(output_, n + 1);
  values_[output_].gradient = gradient[output_];
  hold(*gradient[output_]);
  for (std::size_t i = n; i-- > 0;) {
    Step& step = steps_[i];
    const std::size_t time = backward_time(i);
    const KernelTraits traits = step.kernel->traits();
    const bool wanted = std::ranges::any_of(
        step.inputs, [&](std::size_t input) { return values_[input].wants_gradient; });
    // Before the first layer with parameters there is nothing to do.
    if (!gradient[step.output] || (!wanted && !step.trained)) continue;
    step.runs_backward = !traits.passes_gradient;
    step.output_gradient = *gradient[step.output];
    arena_.use(step.output_gradient, time);
    --holders[step.output_gradient];
    if (step.runs_backward) {
      if (traits.backward_reads_output) arena_.use(values_[step.output].block, time);
      if (traits.backward_reads_input)
        for (const std::size_t input : step.inputs) arena_.use(values_[input].block, time);
    }
    step.input_gradients.resize(step.inputs.size());
    Block shared;  // what all inputs get
    if (traits.passes_gradient) shared = step.output_gradient;
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      const std::size_t input = step.inputs[k];
      if (!values_[input].wants_gradient) continue;
      std::size_t given = 0;
      bool owned = false;  // nobody else reads it
      if (shared) {
        given = *shared;
      } else {
        const bool in_place = traits.in_place && holders[step.output_gradient] == 0;
        given = in_place ? step.output_gradient : fresh(input, time);
        arena_.use(given, time);
        step.input_gradients[k] = given;
        owned = !traits.one_gradient;
        if (traits.one_gradient) shared = given;
      }
      if (const Block before = gradient[input]) {
        const std::size_t floats = values_[input].activation.floats;
        if (!owned) {
          // Another's too: the sum needs a place of its own.
          const std::size_t sum = fresh(input, time);
          step.sums.push_back({sum, given, floats, /*copy=*/true});
          given = sum;
        }
        step.sums.push_back({given, *before, floats, /*copy=*/false});
        arena_.use(*before, time);
        arena_.use(given, time);
        --holders[*before];
      }
      gradient[input] = given;
      hold(given);
    }
  }
  values_[0].gradient = gradient[0];
  if (options_.input_gradient && gradient[0]) arena_.use(*gradient[0], backward_time(0) + 1);
}

float* Network::at(std::size_t block) const noexcept {
  return reinterpret_cast<float*>(memory_.data() + arena_.offset(block));
}

std::span<float> Network::floats(const Value& value) const noexcept {
  return {at(value.block), value.activation.floats};
}

bool Network::uses_library() const noexcept {
  return std::ranges::any_of(steps_, [](const Step& x) { return x.kernel->uses_library(); });
}

bool Network::can_be_recorded() const noexcept {
  return std::ranges::none_of(steps_, [](const Step& x) {
    return x.kernel->traits().waits || x.kernel->sums_over_ranks() > 0;
  });
}

std::span<std::int32_t> Network::ids() noexcept {
  const Value& value = values_.front();
  return {reinterpret_cast<std::int32_t*>(memory_.data() + arena_.offset(value.block)),
          value.activation.floats};
}

/// Has the first `count` of rank_sums() summed, and gives the host's copy; another device than the
/// host is waited for.
Result<std::span<const double>> Network::sum_over_ranks(std::size_t count,
                                                        const SumOverRanks& sum) {
  if (backend().is_host()) {
    const std::span<double> sums{rank_sums(), count};
    TROUPE_TRY(sum(sums));
    return std::span<const double>(sums);
  }
  Stream& stream = *options_.stream;
  // Apart: what goes back may still be read when the next sums come.
  auto* const here = reinterpret_cast<double*>(staged_sums_.data());
  double* const back = here + staged_sums_.size() / sizeof(double) / 2;
  TROUPE_TRY(stream.copy(here, rank_sums(), count * sizeof(double)));
  TROUPE_TRY(stream.synchronize());
  std::copy_n(here, count, back);
  TROUPE_TRY(sum({back, count}));
  TROUPE_TRY(stream.copy(rank_sums(), back, count * sizeof(double)));
  return std::span<const double>(back, count);
}

Status Network::forward(const float* parameters, const PassKey* key, const SumOverRanks& sum) {
  std::vector<const float*> inputs;
  for (Step& step : steps_) {
    if (step.kernel->traits().alias) continue;
    inputs.clear();
    for (const std::size_t input : step.inputs) inputs.push_back(at(values_[input].block));
    ForwardPass pass{.inputs = inputs,
                     .parameters = parameters,
                     .output = at(values_[step.output].block),
                     .key = key,
                     .stream = options_.stream};
    if (const std::size_t count = step.kernel->sums_over_ranks(); count > 0) {
      TROUPE_TRY(step.kernel->forward_sums(pass, rank_sums()));
      TROUPE_ASSIGN(const auto sums, sum_over_ranks(count, sum));
      TROUPE_TRY(step.kernel->check_sums(sums));
      pass.sums_over_ranks = rank_sums();
    }
    TROUPE_TRY(step.kernel->forward(pass));
  }
  return {};
}

std::span<float> Network::output_gradient() noexcept {
  return {at(*values_[output_].gradient), values_[output_].activation.floats};
}

std::span<const float> Network::input_gradient() const noexcept {
  return {at(*values_[0].gradient), values_[0].activation.floats};
}

Status Network::backward(const float* parameters, float* gradients,
                         const GradientEnqueued& enqueued, const SumOverRanks& sum) {
  for (const Step& step : steps_)
    TROUPE_TRY(step.kernel->add_statistics({gradients, options_.stream}));
  if (enqueued) {
    for (std::size_t i = model_.parameters().size(); i-- > 0;)
      if (model_.parameters()[i].kind == ParameterKind::statistic)
        TROUPE_TRY(enqueued(model_.parameters()[i]));
  }
  for (std::size_t i = steps_.size(); i-- > 0;) {
    TROUPE_TRY(run_backward(steps_[i], parameters, gradients, sum));
    if (!enqueued) continue;
    for (std::size_t index : steps_[i].completes) TROUPE_TRY(enqueued(model_.parameters()[index]));
  }
  return {};
}

Status Network::run_backward(Step& step, const float* parameters, float* gradients,
                             const SumOverRanks& sum) {
  if (step.runs_backward) {
    std::vector<const float*> inputs;
    for (const std::size_t input : step.inputs) inputs.push_back(at(values_[input].block));
    std::vector<float*> input_gradients;
    for (const Block& block : step.input_gradients)
      input_gradients.push_back(block ? at(*block) : nullptr);
    BackwardPass pass{.inputs = inputs,
                      .output = at(values_[step.output].block),
                      .output_gradient = at(step.output_gradient),
                      .parameters = parameters,
                      .gradients = gradients,
                      .input_gradients = input_gradients,
                      .stream = options_.stream};
    if (const std::size_t count = step.kernel->sums_over_ranks(); count > 0) {
      TROUPE_TRY(step.kernel->backward_sums(pass, rank_sums()));
      TROUPE_ASSIGN([[maybe_unused]] const auto sums, sum_over_ranks(count, sum));
      pass.sums_over_ranks = rank_sums();
    }
    TROUPE_TRY(step.kernel->backward(pass));
  }
  for (const Sum& added : step.sums) {
    if (added.copy)
      TROUPE_TRY(
          options_.stream->copy(at(added.into), at(added.from), added.floats * sizeof(float)));
    else
      TROUPE_TRY(backend().add_into(*options_.stream, at(added.into), at(added.from), added.floats,
                                    options_.threads));
  }
  return {};
}

}  // namespace troupe::kernels
