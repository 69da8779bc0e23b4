#include "actors/train/loader.hpp"

#include <map>

#include <fmt/format.h>

#include "actors/data/sampler.hpp"
#include "actors/train/lifetime.hpp"
#include "actors/train/messages.hpp"
#include "runtime/graph/messages.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::train {
namespace {

struct Prefetch {
  std::uint64_t step = 0;
};

class Loader {
public:
  Loader(caf::event_based_actor* self, std::shared_ptr<NodeContext> context, Setup setup)
      : self_(self), context_(std::move(context)), setup_(std::move(setup)) {}

  void prepare() {
    Ready ready;
    ready.generation = setup_.generation;
    ready.index = setup_.index;
    ready.actor = fmt::format("loader {}", setup_.index);
    ready.node = setup_.node_of(setup_.index);
    if (auto job = context_->job(setup_); job.ok()) {
      job_ = *job;
      ready.data_hash = job_->data_hash();
    } else {
      ready.code = static_cast<std::uint16_t>(job.code());
      ready.message = job.error().message;
    }
    self_->send(setup_.job_actor, ready);
  }

  caf::result<Batch> next(std::uint64_t step) {
    auto batch = take(step);
    if (!batch.ok()) return remoting::to_caf(batch.error());
    self_->send(self_, Prefetch{step + 1});
    return std::move(*batch);
  }

  void adopted(const Adopt& x) {
    setup_.job_actor = x.job_actor;
    self_->monitor(x.job_actor);
  }

  /// Makes batches up to `prefetch` ahead, one at a time so that a request waits for one at most.
  void prefetch(std::uint64_t step) {
    if (step >= job_->total_steps() || ahead_.size() >= job_->config().operation.prefetch) return;
    if (!ahead_.contains(step)) {
      auto batch = make(step);
      if (!batch.ok()) return;  // the request for it will say so
      ahead_.emplace(step, std::move(*batch));
    }
    if (ahead_.size() < job_->config().operation.prefetch) self_->send(self_, Prefetch{step + 1});
  }

private:
  Result<Batch> take(std::uint64_t step) {
    ahead_.erase(ahead_.begin(), ahead_.lower_bound(step));
    if (auto found = ahead_.extract(step)) return std::move(found.mapped());
    return make(step);
  }

  Result<Batch> make(std::uint64_t step) {
    const auto& config = job_->config();
    const auto samples = config.batch_per_rank();
    Batch batch;
    batch.step = step;
    batch.samples = static_cast<std::uint32_t>(samples);
    const Dataset& data = job_->train_data();
    TROUPE_ASSIGN(batch.inputs, job_->pool().acquire(samples * data.layout().input_bytes()));
    TROUPE_ASSIGN(batch.labels, job_->pool().acquire(samples * data.layout().label_bytes()));
    const auto epoch = step / job_->length().steps_per_epoch;
    TROUPE_TRY(gather(data, job_->sampler().samples(step, setup_.index),
                      {.training = true, .epoch = epoch}, batch.inputs, batch.labels));
    tell_replaced(step);
    return batch;
  }

  /// At the end of an epoch, if there are new ones on this node.
  void tell_replaced(std::uint64_t step) {
    if ((step + 1) % job_->length().steps_per_epoch != 0) return;
    if (auto text = job_->take_replaced(); !text.empty())
      self_->send(setup_.job_actor,
                  Notice{fmt::format("node {}: {}", setup_.node_of(setup_.index), text)});
  }

  caf::event_based_actor* self_;
  std::shared_ptr<NodeContext> context_;
  Setup setup_;
  std::shared_ptr<JobOnNode> job_;
  std::map<std::uint64_t, Batch> ahead_;  // by step
};

}  // namespace
}  // namespace troupe::train

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Prefetch)

namespace troupe::train {

caf::behavior loader(caf::event_based_actor* self, std::shared_ptr<NodeContext> context,
                     Setup setup) {
  const auto started = live_with_the_job(self, *context, Role::loader, setup);
  auto state = std::make_shared<Loader>(self, std::move(context), std::move(setup));
  state->prepare();
  return {
      [state](const NextBatch& x) { return state->next(x.step); },
      [state](const Prefetch& x) { state->prefetch(x.step); },
      [](const graph::Connected&) {},
      [started](graph::Start) { *started = true; },
      [state](const Adopt& x) { state->adopted(x); },
  };
}

}  // namespace troupe::train
