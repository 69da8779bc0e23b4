#include "actors/job/job_actor.hpp"

#include <map>
#include <memory>

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/train/messages.hpp"
#include "actors/train/warmer.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::train {
namespace {

using namespace std::chrono_literals;

/// How long a node may take to write a checkpoint, before another one is asked to.
constexpr auto kSaveTimeout = 120s;
constexpr auto kTick = 250ms;

struct Tick {};

TimePoint now() {
  return std::chrono::steady_clock::now();
}

struct State;
using Self = caf::stateful_actor<std::unique_ptr<State>>;

/// Carries the machine's decisions out. What a node is asked for takes as long as it takes: to
/// halt, the rest of a pass; to copy a state or to read the data, what their size asks for. The
/// loss of the node is an answer, too.
struct State final : JobEffects {
  State(Self* s, JobActorSetup x)
      : self(s), setup(std::move(x)), machine(setup.machine, *this, *setup.observer) {}

  Self* self;
  JobActorSetup setup;
  JobMachine machine;
  std::map<std::uint64_t, std::vector<caf::actor>> reducers;  // by generation

  /// Of a generation whose deployment came in; null for one that is gone.
  caf::actor reducer(std::uint64_t generation, std::size_t index) const {
    const auto at = reducers.find(generation);
    return at != reducers.end() && index < at->second.size() ? at->second[index] : caf::actor{};
  }

  /// Begins, or goes on with what another head began.
  void start() {
    if (!setup.inherited) return machine.start(setup.nodes, now());
    const Inherited& inherited = *setup.inherited;
    if (inherited.generation != 0) {
      reducers[inherited.generation] = std::move(setup.found.reducers);
      for (const auto& actor : setup.found.actors[inherited.generation])
        self->send(actor, Adopt{inherited.term, self, inherited.steps, inherited.epochs});
    }
    machine.inherit(inherited, setup.nodes, now());
    if (inherited.cancelled) machine.cancel(now());
  }

  /// The job takes a node in once it is ready, or says why it does not.
  void warm_up(const NodeWarming& x) {
    self->request(x.warmer, caf::infinite, WarmUp{})
        .then(
            [this, node = x.node](const Warm& warm) {
              const auto code = static_cast<Code>(warm.code);
              if (code == Code::ok)
                return machine.joined(
                    node, {warm.data_hash, warm.weights_hash, warm.program, warm.instruction_set},
                    now());
              machine.unfit(node, {code, warm.message});
            },
            [](caf::error&) {});  // the node is lost
  }

  void on_deployed(Deployed& x) {
    reducers[x.generation] = std::move(x.reducers);
    machine.deployed(x.generation, x.actors, now());
  }

  // JobEffects
  Status starting() override { return setup.starting(); }
  void deploy(std::uint64_t generation, const std::vector<JobNode>& nodes) override {
    setup.deploy(generation, nodes);
  }
  void discard(std::uint64_t generation) override {
    reducers.erase(generation);
    setup.discard(generation);
  }
  void halt(std::uint64_t generation, std::size_t index) override {
    self->request(reducer(generation, index), caf::infinite, Halt{})
        .then(
            [=, this](const Halted& x) { machine.halted(generation, index, x.steps_done, now()); },
            [=, this](caf::error&) { machine.unreachable(generation, index, now()); });
  }
  void pull(std::uint64_t generation, std::size_t index, const StateSource& source) override {
    self->request(reducer(generation, index), caf::infinite,
                  Pull{reducer(source.generation, source.index)})
        .then([=, this](const Pulled& x) { machine.pulled(generation, index, x, now()); },
              [=, this](caf::error& error) {
                machine.not_pulled(generation, index, remoting::from_caf(error), now());
              });
  }
  void begin(std::size_t index, const Begin& begin) override {
    self->send(reducer(begin.generation, index), begin);
  }
  void save(std::uint64_t generation, std::size_t index, bool final_weights) override {
    self->request(reducer(generation, index), kSaveTimeout, Save{final_weights})
        .then([=, this](const Saved& x) { machine.saved(generation, final_weights, x, now()); },
              [=, this](caf::error& error) {
                machine.not_saved(generation, final_weights, remoting::from_caf(error), now());
              });
  }
  void ended(const JobEnded& end) override {
    setup.done(end);
    self->quit();
  }
};

}  // namespace
}  // namespace troupe::train

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Tick)

namespace troupe::train {
namespace {

caf::behavior job(Self* self, JobActorSetup setup) {
  self->state = std::make_unique<State>(self, std::move(setup));
  auto* state = self->state.get();
  self->delayed_send(self, kTick, Tick{});
  state->start();
  return {
      [=](Deployed& x) { state->on_deployed(x); },
      [=](const DeploymentFailed& x) {
        state->machine.deployment_failed(x.generation, x.reason, now());
      },
      [=](const Ready& x) { state->machine.ready(x, now()); },
      [=](const StepFinished& x) { state->machine.step(x); },
      [=](const EpochFinished& x) { state->machine.epoch(x); },
      [=](const Evaluated& x) { state->machine.evaluated(x); },
      [=](const NonFinite& x) { state->machine.skipped(x); },
      [=](const CheckpointWritten& x) { state->machine.checkpoint(x); },
      [=](const Notice& x) { state->setup.observer->on_notice(x); },
      [=](const LastStepDone& x) { state->machine.last_step(x); },
      [=](const Pace& x) { state->machine.pace(x, now()); },
      [=](const Failed& x) { state->machine.failed(x, now()); },
      [=](const NodeDeparted& x) { state->machine.departed(x.node, x.reason, now()); },
      [=](const NodeWarming& x) { state->warm_up(x); },
      [=](const NodeDraining& x) { state->machine.draining(x.node, now()); },
      [=](CancelRequested) { state->machine.cancel(now()); },
      [=](Tick) {
        state->machine.tick(now());
        if (!state->machine.over()) self->delayed_send(self, kTick, Tick{});
      },
  };
}

}  // namespace

caf::actor spawn_job_actor(caf::actor_system& system, JobActorSetup setup) {
  return system.spawn(job, std::move(setup));
}

}  // namespace troupe::train
