#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include "actors/job/job_machine.hpp"
#include "actors/job/takeover.hpp"
#include "actors/train/events.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

// Local commands to the job actor.

/// All actors of `generation` are deployed; `reducers[i]` is on the generation's node i.
struct Deployed {
  std::uint64_t generation = 0;
  std::vector<caf::actor> reducers;
  std::size_t actors = 0;  ///< how many will say Ready
};
/// The actors could not be started, and those that were are being stopped.
struct DeploymentFailed {
  std::uint64_t generation = 0;
  Error reason;
};
/// A node with slots is in the cluster, and gets ready for the job.
struct NodeWarming {
  JobNode node;
  caf::actor warmer;
};
/// A node has left the cluster.
struct NodeDeparted {
  NodeId node;
  Error reason;
};
/// A node is to leave.
struct NodeDraining {
  NodeId node;
};
struct CancelRequested {};

struct JobActorSetup {
  JobMachine::Options machine;
  std::vector<JobNode> nodes;          ///< that are there
  std::optional<Inherited> inherited;  ///< begun under another head
  FoundJob found;                      ///< then
  JobObserver* observer = nullptr;
  std::function<Status()> starting;  ///< once, before the first step
  // Called on the actor's thread, so they only queue.
  std::function<void(std::uint64_t generation, std::vector<JobNode> nodes)> deploy;
  std::function<void(std::uint64_t generation)> discard;
  std::function<void(JobEnded)> done;  ///< once, at the end
};

/// Runs a job's machine on the head: what it decides goes to the job's actors, and what they say to
/// it.
caf::actor spawn_job_actor(caf::actor_system& system, JobActorSetup setup);

}  // namespace troupe::train

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Deployed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::DeploymentFailed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::NodeDeparted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::NodeWarming)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::NodeDraining)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::CancelRequested)
