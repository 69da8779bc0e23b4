#include "actors/train/replica.hpp"

#define XXH_INLINE_ALL
#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "actors/checkpoint/checkpoint_store.hpp"
#include "actors/train/weights.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/parameters.hpp"

namespace troupe::train {
namespace {

/// In front of the parameters' names in a checkpoint: "optimizer.exp_avg.".
std::string state_prefix(std::string_view state) {
  return fmt::format("optimizer.{}.", state);
}

kernels::OptimizerOptions optimizer_options(const OptimizerConfig& config) {
  return {.name = config.name,
          .momentum = config.momentum,
          .nesterov = config.nesterov,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = config.epsilon,
          .trust_coefficient = config.trust_coefficient,
          .weight_decay = config.weight_decay,
          .decay_vectors = config.decay_vectors};
}

/// Views of all parameters in `storage`, which is laid out as the model's flat run. An optimizer
/// (whose names have a prefix) keeps nothing for statistics.
void add_views(const kernels::Model& model, std::string_view prefix, const Buffer& storage,
               std::vector<TensorView>& tensors) {
  for (const auto& info : model.parameters()) {
    if (!prefix.empty() && info.kind == kernels::ParameterKind::statistic) continue;
    const auto values =
        storage.bytes().subspan(info.offset * sizeof(float), info.elements * sizeof(float));
    tensors.push_back(view_of(info, values, prefix));
  }
}

Status read_into(const TensorFile& file, const std::string& name,
                 const kernels::ParameterInfo& info, std::span<float> values,
                 const std::string& path) {
  const auto* tensor = file.find(name);
  if (tensor == nullptr || tensor->dtype != "F32" ||
      !std::ranges::equal(tensor->shape, info.shape.dims(),
                          [](auto a, auto b) { return std::cmp_equal(a, b); }))
    return Error{Code::invalid_argument,
                 fmt::format("checkpoint {} has no tensor '{}' of shape {}; it is of another model",
                             path, name, kernels::to_string(info.shape))};
  std::memcpy(values.data(), tensor->bytes.data(), values.size_bytes());
  return {};
}

/// Whether a job goes on from the checkpoint of one with that hash. A job that stops at what is not
/// finite, or at a bad sample, has left none out so far: up to here it is the same as one that
/// skips.
bool may_go_on(const JobConfig& config, const std::string& results_hash) {
  const auto is_of = [&](const char* non_finite, const char* bad_samples) {
    JobConfig other = config;
    if (other.optimizer.non_finite == "skip") other.optimizer.non_finite = non_finite;
    if (other.data.bad_samples == "skip") other.data.bad_samples = bad_samples;
    return other.results_hash() == results_hash;
  };
  return is_of("skip", "skip") || is_of("stop", "skip") || is_of("skip", "stop") ||
         is_of("stop", "stop");
}

/// Values by keys; of a line that is none of results_text(), nothing.
std::map<std::string_view, std::string_view> keys_and_values(std::string_view text) {
  constexpr std::string_view kIs = " = ";
  std::map<std::string_view, std::string_view> values;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto at = line.find(kIs); at != line.npos)
      values.emplace(line.substr(0, at), line.substr(at + kIs.size()));
  }
  return values;
}

/// What a job with other results has otherwise, by the results_text() of both. A checkpoint of an
/// earlier release does not have its own.
std::string describe_other_job(std::string_view its, std::string_view ours) {
  constexpr std::size_t kMostTold = 4, kMostOfValue = 80;
  const auto there = keys_and_values(its);
  std::vector<std::string> different;
  for (const auto& [key, here] : keys_and_values(ours))
    if (const auto at = there.find(key); at != there.end() && at->second != here)
      different.push_back(fmt::format("{} = {} (here: {})", key, at->second.substr(0, kMostOfValue),
                                      here.substr(0, kMostOfValue)));
  if (different.empty()) return "a job with other results";
  const std::size_t more = different.size() - std::min(kMostTold, different.size());
  different.resize(different.size() - more);
  return fmt::format("a job with {}{}", fmt::join(different, ", "),
                     more == 0 ? "" : fmt::format(" and {} other keys of another value", more));
}

/// How many steps a checkpoint of `steps` steps has skipped.
Result<std::uint64_t> skips_of(const TensorFile& file, std::uint64_t steps,
                               const std::string& path) {
  const auto found = file.metadata.find(std::string(kSkipsKey));
  if (found == file.metadata.end()) return std::uint64_t{0};
  const auto& text = found->second;
  std::uint64_t skips = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), skips);
  if (error != std::errc() || end != text.data() + text.size() || skips > steps)
    return Error{Code::corrupt_data,
                 fmt::format("checkpoint {} has taken {} steps, and skipped '{}' of them; resume "
                             "from another one",
                             path, steps, text)};
  return skips;
}

/// Where a checkpoint's job had come to.
struct Progress {
  std::uint64_t steps_done = 0;
  std::uint64_t skips = 0;
  std::optional<LossScale> loss_scale;
  std::string data_hash;
};

/// Takes the tensors of the checkpoint at `path` for `contents`, which are of `optimizer`.
Result<Progress> read_checkpoint(const std::string& path, const JobConfig& config,
                                 const JobLength& length, const kernels::Optimizer& optimizer,
                                 kernels::TrainingState::Contents& contents) {
  CheckpointStore store(std::filesystem::path(path).parent_path(), config.checkpoint.keep);
  TROUPE_ASSIGN(auto found, store.load(path));
  const auto& metadata = found.content.metadata;
  const auto hash = metadata.find(std::string(kResultsHashKey));
  if (hash == metadata.end() || !may_go_on(config, hash->second)) {
    const auto text = metadata.find(std::string(kResultsKey));
    return Error{
        Code::invalid_argument,
        fmt::format(
            "checkpoint {} is of {}; resume with the job file it was made by", path,
            describe_other_job(text == metadata.end() ? "" : text->second, config.results_text()))};
  }
  const auto infos = optimizer.model().parameters();
  const auto names = optimizer.state_names();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    TROUPE_TRY(
        read_into(found.content, infos[i].name, infos[i], contents.parameters.values(i), path));
    if (infos[i].kind == kernels::ParameterKind::statistic) continue;
    for (std::size_t j = 0; j < names.size(); ++j)
      TROUPE_TRY(read_into(found.content, state_prefix(names[j]) + infos[i].name, infos[i],
                           contents.optimizer_state[j].values(i), path));
  }
  if (const auto total = length.epochs * length.steps_per_epoch; found.entry.step > total)
    return Error{
        Code::corrupt_data,
        fmt::format("checkpoint {} has taken {} steps, but the whole job has {}; resume from "
                    "another one",
                    path, found.entry.step, total)};
  Progress progress;
  TROUPE_ASSIGN(progress.skips, skips_of(found.content, found.entry.step, path));
  if (const auto scale = metadata.find(std::string(kLossScaleKey)); scale != metadata.end()) {
    auto read = LossScale::from_text(scale->second);
    if (!read.ok())
      return Error{read.error().code, fmt::format("checkpoint {}: {}", path, read.error().message)};
    progress.loss_scale = *read;
  }
  if (const auto data = metadata.find(std::string(kDataHashKey)); data != metadata.end())
    progress.data_hash = data->second;
  progress.steps_done = found.entry.step;
  return progress;
}

std::vector<Buffer> buffers_of(const std::vector<kernels::Parameters>& state) {
  std::vector<Buffer> buffers;
  for (const auto& one : state) buffers.push_back(one.buffer());
  return buffers;
}

}  // namespace

std::vector<Bucket> make_buckets(const kernels::Model& model, std::uint64_t bucket_bytes) {
  const auto wanted = std::max<std::uint64_t>(1, bucket_bytes / sizeof(float));
  const auto parameters = model.parameters();
  std::vector<Bucket> buckets;
  std::uint64_t end = model.flat_size();
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const std::uint64_t begin = parameters[i].offset;
    if (end - begin < wanted && i > 0) continue;
    buckets.push_back({begin, end});
    end = begin;
  }
  return buckets;
}

Replica::Replica(const JobConfig& config, kernels::TrainingState state, JobLength length)
    : optimizer_config_(config.optimizer),
      state_(std::move(state)),
      length_(length),
      gradient_scale_(1.0f /
                      static_cast<float>(config.data.batch *
                                         static_cast<std::uint64_t>(model().labels_per_sample()))),
      statistic_scale_(1.0f / static_cast<float>(config.data.batch)),
      loss_scale_(config.optimizer) {}

Result<std::unique_ptr<Replica>> Replica::make(const JobConfig& config, const kernels::Model& model,
                                               kernels::ComputeDevice device,
                                               const std::string& resume_from, JobLength length) {
  TROUPE_ASSIGN(auto optimizer,
                kernels::make_optimizer(optimizer_options(config.optimizer), model));
  TROUPE_TRY(kernels::TrainingState::reserve(device, *optimizer));
  TROUPE_ASSIGN(auto parameters, kernels::Parameters::initialized(model, config.seed));
  TROUPE_ASSIGN(auto optimizer_state, optimizer->initial_state());
  kernels::TrainingState::Contents contents{std::move(parameters), std::move(optimizer_state)};
  Progress progress;
  std::string weights_hash;
  if (!resume_from.empty()) {
    TROUPE_ASSIGN(progress, read_checkpoint(resume_from, config, length, *optimizer, contents));
  } else if (!config.model.weights.empty()) {
    PosixFileSystem files;
    TROUPE_ASSIGN(auto loaded, load_weights(files, config.model.weights, contents.parameters,
                                            {.fresh = config.model.fresh}));
    weights_hash = std::move(loaded.content_hash);
  }
  TROUPE_ASSIGN(auto state, kernels::TrainingState::create(std::move(device), std::move(optimizer),
                                                           std::move(contents)));
  std::unique_ptr<Replica> replica(new Replica(config, std::move(state), length));
  replica->weights_hash_ = std::move(weights_hash);
  replica->resumed_data_hash_ = std::move(progress.data_hash);
  replica->steps_done_ = progress.steps_done;
  replica->skips_ = progress.skips;
  if (progress.loss_scale) replica->loss_scale_ = *progress.loss_scale;
  return replica;
}

Status Replica::take_step(std::span<const kernels::GradientRun> gradient_sum) {
  kernels::UpdateFactors factors;
  factors.update = steps_done_ - skips_ + 1;
  factors.learning_rate = learning_rate(optimizer_config_, steps_done_, length_);
  factors.gradient_scale = gradient_scale_ / loss_scale_.value();
  if (const double most = optimizer_config_.clip_norm; most > 0) {
    const auto scale = static_cast<double>(factors.gradient_scale);
    const double norm = scale * kernels::gradient_norm(model(), gradient_sum);
    factors.gradient_scale = static_cast<float>(scale * kernels::clip_factor(norm, most));
  }
  TROUPE_TRY(state_.update(factors, gradient_sum, statistic_scale_));
  loss_scale_.add_finite(optimizer_config_);
  ++steps_done_;
  return {};
}

Result<std::string> Replica::hash() const {
  TROUPE_ASSIGN(const auto contents, state_.contents());
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> owner(XXH3_createState(),
                                                                       &XXH3_freeState);
  auto* const state = owner.get();
  XXH3_128bits_reset(state);
  const auto add = [state](const kernels::Parameters& x) {
    XXH3_128bits_update(state, x.values().data(), x.values().size_bytes());
  };
  add(contents.parameters);
  for (const auto& buffer : contents.optimizer_state) add(buffer);
  XXH3_128bits_update(state, &steps_done_, sizeof steps_done_);
  XXH3_128bits_update(state, &skips_, sizeof skips_);
  const std::string scale = loss_scale_.to_text();
  XXH3_128bits_update(state, scale.data(), scale.size());
  const auto digest = XXH3_128bits_digest(state);
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

Result<Replica::Snapshot> Replica::snapshot() const {
  Snapshot snapshot;
  snapshot.steps_done = steps_done_;
  snapshot.skips = skips_;
  snapshot.loss_scale = loss_scale_;
  TROUPE_ASSIGN(const auto contents, state_.copy());
  snapshot.parameters = contents.parameters.buffer();
  add_views(model(), "", snapshot.parameters, snapshot.tensors);
  snapshot.weights = snapshot.tensors.size();
  snapshot.optimizer_state = buffers_of(contents.optimizer_state);
  for (std::size_t i = 0; i < snapshot.optimizer_state.size(); ++i)
    add_views(model(), state_prefix(state_.optimizer().state_names()[i]),
              snapshot.optimizer_state[i], snapshot.tensors);
  return snapshot;
}

Status Replica::install(std::uint64_t steps_done, std::uint64_t skips, const LossScale& loss_scale,
                        const Buffer& parameters, const std::vector<Buffer>& optimizer_state,
                        std::vector<EpochFinished> epochs) {
  const auto written = state_.write(parameters, optimizer_state);
  if (written.code() == Code::shape_mismatch)
    return Error{written.code(),
                 fmt::format("the other node's state: {}; run the same job and release on both",
                             written.error().message)};
  TROUPE_TRY(written);
  steps_done_ = steps_done;
  skips_ = skips;
  loss_scale_ = loss_scale;
  epochs_ = std::move(epochs);
  return {};
}

}  // namespace troupe::train
