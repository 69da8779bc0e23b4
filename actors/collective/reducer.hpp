#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>

#include "actors/collective/messages.hpp"
#include "actors/collective/reduce_machine.hpp"
#include "runtime/remoting/buffer_message.hpp"

namespace troupe::collective {

// What a reducer actor is told, and what it tells its listener. A gradient goes in as GradientReady
// and comes out, summed over all ranks, as BucketSum on every node.

/// -> reducer: take part in a generation from `step` on. Monitors the other reducers.
struct Peers {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t self = 0;            ///< place of the receiver in `reducers`
  std::vector<caf::actor> reducers;  ///< one a node, in the plan's order
  PlanSpec plan;
  caf::actor listener;  ///< gets BucketSum, StepSum and ReductionFailed
};

/// -> reducer: end the generation now; nothing is sent any more. Older ones are ignored.
struct EndGeneration {
  std::uint64_t generation = 0;
};

/// Trainer -> reducer of its node: a rank's gradient for a bucket is final.
struct GradientReady {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t bucket = 0;
  Buffer gradient;  ///< f32, all of the bucket; not written again before it is unique()
};

/// Trainer -> reducer of its node: a rank's extra values of a step.
struct ExtrasReady {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::vector<double> values;
};

/// Reducer -> listener: the sum of a bucket over all ranks.
struct BucketSum {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t bucket = 0;
  Buffer sum;  ///< f32; read-only
};

/// Reducer -> listener: all buckets of the step were summed; and the sums of the extra values.
struct StepSum {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::vector<double> extras;
};

/// Reducer -> listener: a value or message was refused, or a peer is gone. After `unavailable` and
/// `resource_exhausted` the generation is over here; otherwise nothing changed.
struct ReductionFailed {
  std::uint64_t generation = 0;
  std::uint16_t code = 0;
  std::string message;
};

/// Turns a machine's sends into messages between actors; an actor of one's own derives from it and
/// says what happens with the sums.
///
/// Ownership: borrows the actor. Threads: that actor only.
class ActorEffects : public ReduceMachine::Effects {
public:
  explicit ActorEffects(caf::event_based_actor* self) : self_(self) {}

  void set_peers(std::vector<caf::actor> peers) { peers_ = std::move(peers); }
  const std::vector<caf::actor>& peers() const noexcept { return peers_; }
  /// True if the message that is handled now comes from node `from`.
  bool comes_from(std::uint32_t from) const;

  void send(std::uint32_t to, Partial message) override;
  void send(std::uint32_t to, SliceSum message) override;
  void send(std::uint32_t to, Extras message) override;

private:
  caf::event_based_actor* self_;
  std::vector<caf::actor> peers_;
};

/// Adds all messages of this folder to an actor system's types. Adding twice does no harm.
void add_message_types(caf::actor_system_config& config);

/// Spawns a reducer; it lives until it is sent an exit message.
caf::actor spawn_reducer(caf::actor_system& system, ReduceMachine::Options options = {});

template <class Inspector>
auto inspect(Inspector& f, Peers& x) {
  return f(x.generation, x.step, x.self, x.reducers, x.plan, x.listener);
}
template <class Inspector>
auto inspect(Inspector& f, EndGeneration& x) {
  return f(x.generation);
}
template <class Inspector>
auto inspect(Inspector& f, GradientReady& x) {
  return f(x.generation, x.step, x.rank, x.bucket, x.gradient);
}
template <class Inspector>
auto inspect(Inspector& f, ExtrasReady& x) {
  return f(x.generation, x.step, x.rank, x.values);
}
template <class Inspector>
auto inspect(Inspector& f, BucketSum& x) {
  return f(x.generation, x.step, x.bucket, x.sum);
}
template <class Inspector>
auto inspect(Inspector& f, StepSum& x) {
  return f(x.generation, x.step, x.extras);
}
template <class Inspector>
auto inspect(Inspector& f, ReductionFailed& x) {
  return f(x.generation, x.code, x.message);
}

}  // namespace troupe::collective
