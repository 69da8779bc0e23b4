#pragma once

#include <memory>

#include "runtime/cluster/internal/participant.hpp"
#include "runtime/membership/node_machine.hpp"

namespace troupe::cluster {

/// Takes part in a cluster that another process leads: a NodeMachine, wired. Ownership, threads: as
/// Participant.
class Node final : public Participant {
public:
  Node(transport::Transport& actors, transport::Transport& liveness, const Clock& clock,
       Events& events)
      : Participant(actors, liveness, clock, events) {}

  /// Joins as `options` say; on_view with this node or on_out follows. Once, instead of begin().
  void join(membership::NodeMachine::Options options);

private:
  std::unique_ptr<membership::Machine> make_machine(TimePoint now) override;

  membership::NodeMachine::Options options_;
};

}  // namespace troupe::cluster
