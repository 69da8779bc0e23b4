#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <caf/actor.hpp>

#include "actors/job/job_machine.hpp"
#include "runtime/cluster/runtime.hpp"

namespace troupe::train {

/// What is left of a job on the cluster's nodes, begun under another head.
struct FoundJob {
  std::map<std::uint64_t, std::vector<caf::actor>> actors;  ///< all, by generation
  std::vector<caf::actor> reducers;  ///< of Inherited::generation, by index; null where none is
};

/// Asks the nodes of `view` what they hold of `job`, and puts it into `inherited`, which has what
/// the store knew. A node that does not answer counts as holding nothing. Blocks: not from an
/// actor.
FoundJob find_job(Runtime& runtime, const View& view, std::uint64_t job, Inherited& inherited);

}  // namespace troupe::train
