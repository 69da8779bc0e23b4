#include "actors/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include <caf/scoped_actor.hpp>
#include <fmt/format.h>

#include "actors/collective/reducer.hpp"
#include "actors/train/lifetime.hpp"
#include "actors/train/messages.hpp"
#include "actors/train/model_factory.hpp"
#include "actors/train/non_finite.hpp"
#include "kernels/workspace.hpp"
#include "runtime/graph/messages.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::train {
namespace {

/// How long a loader may take for one batch.
constexpr auto kBatchTimeout = std::chrono::seconds(60);
/// Test samples that are run through the model at a time: some of a rank's batches, so that what
/// has the memory to train has it for that, too, within these bounds.
constexpr std::uint64_t kBatchesTested = 4;
constexpr std::uint64_t kLeastTested = 32;
constexpr std::uint64_t kMostTested = 250;

class Trainer : public std::enable_shared_from_this<Trainer> {
public:
  Trainer(caf::event_based_actor* self, std::shared_ptr<NodeContext> context, Setup setup)
      : self_(self), context_(std::move(context)), setup_(std::move(setup)) {}

  /// Errors are told to the job.
  void prepare() {
    Ready ready;
    ready.generation = setup_.generation;
    ready.index = setup_.index;
    ready.actor = name();
    ready.node = setup_.node_of(setup_.index);
    if (auto status = try_prepare(); !status.ok()) {
      ready.code = static_cast<std::uint16_t>(status.code());
      ready.message = status.error().message;
    }
    self_->send(setup_.job_actor, ready);
  }

  void connected(const graph::Connected& x) {
    (x.port == kBatches ? loader_ : reducer_) = x.peers.at(0).actor;
  }

  void begin(const StepBegun& step) {
    self_->request(loader_, kBatchTimeout, NextBatch{step.step})
        .then(
            [state = shared_from_this(), step](const Batch& batch) {
              if (auto status = state->compute(step, batch); !status.ok())
                state->fail(status.error());
            },
            [state = shared_from_this()](const caf::error& error) {
              state->fail(remoting::from_caf(error));
            });
  }

  void evaluate(const Evaluate& x) {
    auto stats = try_evaluate();
    if (!stats.ok()) return fail(stats.error());
    const Evaluated evaluated{x.generation,
                              x.epoch,
                              setup_.index,
                              static_cast<std::uint64_t>(stats->count),
                              static_cast<std::uint64_t>(stats->correct),
                              stats->loss_sum};
    self_->send(reducer_, evaluated);
  }

  Released release() {
    workspace_.reset();
    return {};
  }

private:
  std::string name() const { return fmt::format("trainer {}", setup_.index); }

  Status try_prepare() {
    TROUPE_ASSIGN(job_, context_->job(setup_));
    const auto& config = job_->config();
    buckets_ = make_buckets(job_->replica().model(), config.operation.bucket_bytes);
    TROUPE_ASSIGN(auto workspace,
                  kernels::Workspace::create(job_->replica().model(),
                                             workspace_options(config, job_->device())));
    workspace_ = std::make_unique<kernels::Workspace>(std::move(workspace));
    return {};
  }

  /// Inputs and labels as the tensors that the workspace takes; they share the buffers.
  Result<std::pair<kernels::Tensor, kernels::Tensor>> tensors(Buffer inputs, Buffer labels,
                                                              std::uint64_t samples) const {
    const auto& layout = job_->train_data().layout();
    const auto count = static_cast<std::int64_t>(samples);
    TROUPE_ASSIGN(auto x, kernels::Tensor::view(std::move(inputs), 0, layout.dtype,
                                                layout.input.with_first(count)));
    TROUPE_ASSIGN(auto y, kernels::Tensor::view(std::move(labels), 0, kernels::DType::i32,
                                                layout.labels.with_first(count)));
    return std::pair{std::move(x), std::move(y)};
  }

  /// Sends each bucket as soon as backward has finished it, then what is not finite in any of them
  /// or the loss, then the extra values.
  Status compute(const StepBegun& step, const Batch& batch) {
    const auto begun = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(auto input, tensors(batch.inputs, batch.labels, batch.samples));
    const auto floats = job_->replica().model().flat_size();
    TROUPE_ASSIGN(auto gradients, job_->acquire_gradients(floats * sizeof(float)));
    const std::span<float> values{reinterpret_cast<float*>(gradients.data()), floats};
    std::optional<NonFinite> bad;
    std::uint32_t sent = 0;
    const auto send_from = [&](std::uint64_t first_final) {
      for (; sent < buckets_.size() && buckets_[sent].begin >= first_final; ++sent) {
        const auto& bucket = buckets_[sent];
        if (!bad)
          bad = find_non_finite(job_->replica().model(), bucket.begin,
                                values.subspan(bucket.begin, bucket.end - bucket.begin));
        self_->send(reducer_, collective::GradientReady{
                                  step.generation, step.step, setup_.index, sent,
                                  gradients.slice(bucket.begin * sizeof(float),
                                                  (bucket.end - bucket.begin) * sizeof(float))});
      }
    };
    TROUPE_ASSIGN(auto stats,
                  workspace_->forward_backward(
                      job_->replica().weights(), input.first, input.second, values,
                      {.ready = [&](const kernels::ParameterInfo& info) { send_from(info.offset); },
                       .key = {job_->config().seed, step.step, setup_.index},
                       .loss_scale = job_->replica().loss_scale().value(),
                       .sum_over_ranks =
                           [&, call = 0u](std::span<double> sums) mutable {
                             return sum(step, call++, sums);
                           }}));
    send_from(0);
    job_->add_compute(std::chrono::steady_clock::now() - begun);
    if (!bad && !std::isfinite(stats.loss_sum)) bad = NonFinite{.nan = std::isnan(stats.loss_sum)};
    if (bad) {
      bad->generation = step.generation;
      bad->step = step.step;
      bad->rank = setup_.index;
      self_->send(reducer_, *bad);
    }
    self_->send(reducer_,
                collective::ExtrasReady{
                    step.generation,
                    step.step,
                    setup_.index,
                    {stats.loss_sum, static_cast<double>(stats.correct), bad ? 1.0 : 0.0}});
    return {};
  }

  /// Waits, in the middle of a pass: the actor has a thread of its own where models ask for this
  /// (kDetachedTrainerType).
  Status sum(const StepBegun& step, std::uint32_t call, std::span<double> values) {
    RankValues request{step.generation, step.step, setup_.index, call, {}};
    request.values.assign(values.begin(), values.end());
    Status status;
    caf::scoped_actor asker(self_->system());
    asker->request(reducer_, caf::infinite, std::move(request))
        .receive(
            [&](const SummedValues& sums) {
              if (sums.values.size() < values.size())
                status = {Code::protocol_error,
                          fmt::format("a sum of {} values over all ranks came back as {}",
                                      values.size(), sums.values.size())};
              else
                std::copy_n(sums.values.begin(), values.size(), values.begin());
            },
            [&](const caf::error& error) { status = remoting::from_caf(error); });
    return status;
  }

  /// The rank's share of the test set.
  Result<kernels::LossStats> try_evaluate() {
    const auto& data = job_->test_data();
    const auto share = test_share(data.count(), job_->config().ranks, setup_.index);
    const auto most =
        std::clamp(kBatchesTested * job_->config().batch_per_rank(), kLeastTested, kMostTested);
    kernels::LossStats total;
    for (auto first = share.begin; first < share.end; first += most) {
      const auto count = std::min(most, share.end - first);
      TROUPE_ASSIGN(auto inputs, job_->pool().acquire(count * data.layout().input_bytes()));
      TROUPE_ASSIGN(auto labels, job_->pool().acquire(count * data.layout().label_bytes()));
      TROUPE_TRY(gather_run(data, first, count, kForTest, inputs, labels));
      TROUPE_ASSIGN(auto input, tensors(std::move(inputs), std::move(labels), count));
      TROUPE_ASSIGN(auto stats,
                    workspace_->evaluate(job_->replica().weights(), input.first, input.second));
      total += stats;
    }
    return total;
  }

  void fail(const Error& error) {
    self_->send(reducer_, Failed{setup_.generation, name(), static_cast<std::uint16_t>(error.code),
                                 error.message});
  }

  caf::event_based_actor* self_;
  std::shared_ptr<NodeContext> context_;
  Setup setup_;
  std::shared_ptr<JobOnNode> job_;
  std::vector<Bucket> buckets_;
  std::unique_ptr<kernels::Workspace> workspace_;
  caf::actor loader_, reducer_;
};

}  // namespace

caf::behavior trainer(caf::event_based_actor* self, std::shared_ptr<NodeContext> context,
                      Setup setup) {
  const auto started = live_with_the_job(self, *context, Role::trainer, setup);
  auto state = std::make_shared<Trainer>(self, std::move(context), std::move(setup));
  state->prepare();
  return {
      [state](const graph::Connected& x) { state->connected(x); },
      [started](graph::Start) { *started = true; },
      [self](const Adopt& x) { self->monitor(x.job_actor); },
      [state](const StepBegun& x) { state->begin(x); },
      [state](const Evaluate& x) { state->evaluate(x); },
      [state](Release) { return state->release(); },
  };
}

}  // namespace troupe::train
