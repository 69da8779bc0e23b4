#include "actors/train/replica.hpp"

#define XXH_INLINE_ALL
#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <xxhash.h>

#include "actors/checkpoint/checkpoint_store.hpp"
#include "kernels/statistics.hpp"

namespace troupe::train {
namespace {

constexpr std::string_view kMomentumPrefix = "optimizer.momentum.";

std::string checkpoint_name(std::string_view prefix, const kernels::ParameterInfo& info) {
  return std::string(prefix) + info.name;
}

/// Views of all parameters in `storage`, which is laid out as the model's flat run. An optimizer
/// (whose names have a prefix) keeps nothing for statistics.
void add_views(const kernels::Model& model, std::string_view prefix, const Buffer& storage,
               std::vector<TensorView>& tensors) {
  for (const auto& info : model.parameters()) {
    if (!prefix.empty() && info.kind == kernels::ParameterKind::statistic) continue;
    TensorView view;
    view.name = checkpoint_name(prefix, info);
    for (auto size : info.shape.dims()) view.shape.push_back(static_cast<std::uint64_t>(size));
    view.bytes =
        storage.bytes().subspan(info.offset * sizeof(float), info.elements * sizeof(float));
    tensors.push_back(std::move(view));
  }
}

Status read_into(const TensorFile& file, const std::string& name,
                 const kernels::ParameterInfo& info, std::span<float> values,
                 const std::string& path) {
  const auto* tensor = file.find(name);
  if (tensor == nullptr || tensor->dtype != "F32" || tensor->bytes.size() != values.size_bytes())
    return Error{Code::invalid_argument,
                 fmt::format("checkpoint {} has no tensor '{}' of shape {}; it is of another model",
                             path, name, kernels::to_string(info.shape))};
  std::memcpy(values.data(), tensor->bytes.data(), values.size_bytes());
  return {};
}

/// Whether a job goes on from the checkpoint of one with that hash. A job that stops at what is not
/// finite has left no step out so far: up to here it is the same as one that skips.
bool may_go_on(JobConfig config, const std::string& results_hash) {
  if (config.results_hash() == results_hash) return true;
  if (config.optimizer.non_finite != "skip") return false;
  config.optimizer.non_finite = "stop";
  return config.results_hash() == results_hash;
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

Replica::Replica(const JobConfig& config, kernels::Parameters parameters,
                 kernels::Parameters momentum, JobLength length)
    : parameters_(std::move(parameters)),
      momentum_(std::move(momentum)),
      optimizer_config_(config.optimizer),
      sgd_{static_cast<float>(config.optimizer.momentum),
           static_cast<float>(config.optimizer.weight_decay), config.optimizer.nesterov},
      length_(length),
      gradient_scale_(1.0f / static_cast<float>(config.data.batch)) {}

Result<std::unique_ptr<Replica>> Replica::make(const JobConfig& config, const kernels::Model& model,
                                               const std::string& resume_from, JobLength length) {
  TROUPE_ASSIGN(auto parameters, kernels::Parameters::initialized(model, config.seed));
  TROUPE_ASSIGN(auto momentum, kernels::Parameters::zeros(model));
  std::unique_ptr<Replica> replica(
      new Replica(config, std::move(parameters), std::move(momentum), length));
  TROUPE_TRY(replica->sgd_.validate());
  if (!resume_from.empty()) TROUPE_TRY(replica->load(resume_from, config));
  return replica;
}

Status Replica::load(const std::string& path, const JobConfig& config) {
  CheckpointStore store(std::filesystem::path(path).parent_path(), config.checkpoint.keep);
  TROUPE_ASSIGN(auto found, store.load(path));
  const auto& metadata = found.content.metadata;
  const auto hash = metadata.find(std::string(kResultsHashKey));
  if (hash == metadata.end() || !may_go_on(config, hash->second))
    return Error{
        Code::invalid_argument,
        fmt::format("checkpoint {} is of a job with another model, optimizer, batch, seed or "
                    "number of ranks; resume with the job file it was made by",
                    path)};
  const auto infos = model().parameters();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    TROUPE_TRY(read_into(found.content, infos[i].name, infos[i], parameters_.values(i), path));
    if (infos[i].kind == kernels::ParameterKind::statistic) continue;
    TROUPE_TRY(read_into(found.content, checkpoint_name(kMomentumPrefix, infos[i]), infos[i],
                         momentum_.values(i), path));
  }
  steps_done_ = found.entry.step;
  return {};
}

void Replica::apply(std::uint64_t begin, std::span<const float> gradient_sum) {
  const auto rate = static_cast<float>(learning_rate(optimizer_config_, steps_done_, length_));
  const std::size_t trained = std::min(begin + gradient_sum.size(), model().trained_size());
  if (begin < trained) {
    const std::size_t count = trained - begin;
    kernels::sgd_step(sgd_, rate, gradient_scale_, parameters_.values().subspan(begin, count),
                      momentum_.values().subspan(begin, count), gradient_sum.first(count));
  }
  kernels::update_statistics(model(), begin, gradient_sum, gradient_scale_, parameters_.values());
}

std::string Replica::hash() const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> owner(XXH3_createState(),
                                                                       &XXH3_freeState);
  auto* const state = owner.get();
  XXH3_128bits_reset(state);
  for (const auto* values : {&parameters_, &momentum_})
    XXH3_128bits_update(state, values->values().data(), values->values().size_bytes());
  XXH3_128bits_update(state, &steps_done_, sizeof steps_done_);
  const auto digest = XXH3_128bits_digest(state);
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

Result<Replica::Snapshot> Replica::snapshot() const {
  Snapshot snapshot;
  snapshot.steps_done = steps_done_;
  TROUPE_ASSIGN(auto parameters, parameters_.clone());
  TROUPE_ASSIGN(auto momentum, momentum_.clone());
  add_views(model(), "", parameters.buffer(), snapshot.tensors);
  snapshot.weights = snapshot.tensors.size();
  add_views(model(), kMomentumPrefix, momentum.buffer(), snapshot.tensors);
  snapshot.storage = {parameters.buffer(), momentum.buffer()};
  return snapshot;
}

Status Replica::install(std::uint64_t steps_done, std::uint64_t skips, const Buffer& parameters,
                        const Buffer& momentum, std::vector<EpochFinished> epochs) {
  const auto bytes = parameters_.values().size_bytes();
  if (parameters.size() < bytes || momentum.size() < bytes)
    return Error{Code::shape_mismatch,
                 fmt::format("the other node's weights have {} bytes and its momentum {}, but this "
                             "model has {} of each; run the same job and release on both",
                             parameters.size(), momentum.size(), bytes)};
  std::memcpy(parameters_.values().data(), parameters.data(), bytes);
  std::memcpy(momentum_.values().data(), momentum.data(), bytes);
  steps_done_ = steps_done;
  skips_ = skips;
  epochs_ = std::move(epochs);
  return {};
}

}  // namespace troupe::train
