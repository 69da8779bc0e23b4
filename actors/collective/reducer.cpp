#include "actors/collective/reducer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "actors/collective/all_reduce.hpp"

namespace troupe::collective {
namespace {

class ReducerActor final : public caf::event_based_actor, private ActorEffects {
public:
  ReducerActor(caf::actor_config& config, ReduceMachine::Options options)
      : caf::event_based_actor(config), ActorEffects(this), machine_(std::move(options), *this) {
    set_down_handler([this](caf::down_msg& down) { lost(down.source); });
  }

  const char* name() const override { return "troupe.reducer"; }

protected:
  caf::behavior make_behavior() override {
    return {
        [this](Peers& x) { begin(x); },
        [this](const EndGeneration& x) {
          if (machine_.active() && x.generation >= machine_.generation()) end();
        },
        [this](GradientReady& x) {
          report(x.generation, machine_.add_gradient(x.generation, x.step, x.rank, x.bucket,
                                                     std::move(x.gradient)));
        },
        [this](const ExtrasReady& x) {
          report(x.generation, machine_.add_extras(x.generation, x.step, x.rank, x.values));
        },
        [this](Partial& x) { receive(x); },
        [this](SliceSum& x) { receive(x); },
        [this](Extras& x) { receive(x); },
    };
  }

  void on_exit() override {
    end();
    listener_ = nullptr;
  }

private:
  void begin(Peers& x) {
    auto plan = ReducePlan::make(std::move(x.plan));
    Status status = plan.status();
    if (status.ok() && x.reducers.size() != (*plan)->nodes())
      status = {Code::invalid_argument, fmt::format("{} reducers for a plan of {} nodes",
                                                    x.reducers.size(), (*plan)->nodes())};
    if (status.ok() && machine_.active() && x.generation > machine_.generation()) end();
    if (status.ok()) {
      if (!machine_.active()) {
        set_peers(std::move(x.reducers));
        for (std::uint32_t i = 0; i < peers().size(); ++i)
          if (i != x.self) monitor(peers()[i]);
        listener_ = x.listener;
      }
      status = machine_.start(std::move(plan).value(), x.self, x.generation, x.step);
    }
    if (!status.ok()) fail(x.listener, x.generation, status.error());
  }

  void end() {
    for (const auto& peer : peers()) demonitor(caf::actor_cast<caf::actor_addr>(peer));
    set_peers({});
    machine_.abort();
  }

  template <class T>
  void receive(T& x) {
    // Before begin() the peers are not known; what does not fit is found out then.
    if (machine_.active() && x.generation == machine_.generation() && !comes_from(x.from)) {
      fail(listener_, x.generation,
           {Code::protocol_error,
            fmt::format("a message as from node {} came from another actor; dropped", x.from)});
      return;
    }
    const auto generation = x.generation;
    report(generation, machine_.receive(std::move(x)));
  }

  void report(std::uint64_t generation, const Status& status) {
    if (status.ok() || status.code() == Code::stale_generation) return;
    if (status.code() == Code::resource_exhausted && machine_.active()) end();
    fail(listener_, generation, status.error());
  }

  void fail(const caf::actor& listener, std::uint64_t generation, const Error& error) {
    if (listener)
      caf::event_based_actor::send(
          listener,
          ReductionFailed{generation, static_cast<std::uint16_t>(error.code), error.message});
  }

  void lost(const caf::actor_addr& who) {
    const auto& all = peers();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const caf::actor& peer) { return peer.address() == who; });
    if (found == all.end() || !machine_.active()) return;
    const auto node = found - all.begin();
    const auto generation = machine_.generation();
    end();
    fail(listener_, generation,
         {Code::unavailable, fmt::format("the reducer of node {} is gone", node)});
  }

  void bucket_done(std::uint64_t step, std::uint32_t bucket, Buffer sum) override {
    caf::event_based_actor::send(listener_,
                                 BucketSum{machine_.generation(), step, bucket, std::move(sum)});
  }
  void step_done(std::uint64_t step, std::vector<double> extras) override {
    caf::event_based_actor::send(listener_,
                                 StepSum{machine_.generation(), step, std::move(extras)});
  }
  void kept_refused(Error reason) override { fail(listener_, machine_.generation(), reason); }

  ReduceMachine machine_;
  caf::actor listener_;
};

}  // namespace

bool ActorEffects::comes_from(std::uint32_t from) const {
  return from < peers_.size() && self_->current_sender() != nullptr &&
         peers_[from].address() == caf::actor_cast<caf::actor_addr>(self_->current_sender());
}

void ActorEffects::send(std::uint32_t to, Partial message) {
  self_->send(peers_[to], std::move(message));
}
void ActorEffects::send(std::uint32_t to, SliceSum message) {
  self_->send(peers_[to], std::move(message));
}
void ActorEffects::send(std::uint32_t to, Extras message) {
  self_->send(peers_[to], std::move(message));
}

void add_message_types(caf::actor_system_config& config) {
  config.add_message_type<PlanSpec>("troupe.collective.plan");
  config.add_message_type<Partial>("troupe.collective.partial");
  config.add_message_type<SliceSum>("troupe.collective.slice_sum");
  config.add_message_type<Extras>("troupe.collective.extras");
  config.add_message_type<Peers>("troupe.collective.peers");
  config.add_message_type<EndGeneration>("troupe.collective.end_generation");
  config.add_message_type<GradientReady>("troupe.collective.gradient_ready");
  config.add_message_type<ExtrasReady>("troupe.collective.extras_ready");
  config.add_message_type<BucketSum>("troupe.collective.bucket_sum");
  config.add_message_type<StepSum>("troupe.collective.step_sum");
  config.add_message_type<ReductionFailed>("troupe.collective.reduction_failed");
  config.add_message_type<Group>("troupe.collective.group");
  config.add_message_type<AllReduce>("troupe.collective.all_reduce");
  config.add_message_type<AllReduced>("troupe.collective.all_reduced");
}

caf::actor spawn_reducer(caf::actor_system& system, ReduceMachine::Options options) {
  return system.spawn<ReducerActor>(std::move(options));
}

}  // namespace troupe::collective
