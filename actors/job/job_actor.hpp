#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include "actors/train/events.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// A node that the job uses, and the reducer on it. Reducers are told to halt and to save.
struct JobNode {
  NodeId node;
  std::string name;
};

// Local commands to the job actor.

/// All actors of the job are deployed; `reducers[i]` is on `nodes[i]`.
struct Deployed {
  std::vector<caf::actor> reducers;
  std::size_t actors = 0;  ///< how many will say Ready
};
/// The actors could not be started, and those that were are being stopped.
struct DeploymentFailed {
  Error reason;
};
/// A node left the cluster.
struct NodeDeparted {
  NodeId node;
  Error reason;
};
struct CancelRequested {};

struct JobActorSetup {
  std::uint64_t generation = 1;
  JobStarted
      started;  ///< told to the observer when all are ready, with what they say of data and model
  std::vector<JobNode> nodes;
  JobObserver* observer = nullptr;
  /// Called once, at the end, on the actor's thread.
  std::function<void(JobEnded)> done;
};

/// Follows a job on the head: waits until its actors are ready and agree, begins, passes on what
/// they report, and brings it to an end: finished, failed (survivors halt, the most advanced one
/// writes a checkpoint), or cancelled (the same).
caf::actor spawn_job_actor(caf::actor_system& system, JobActorSetup setup);

}  // namespace troupe::train

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Deployed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::DeploymentFailed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::NodeDeparted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::CancelRequested)
