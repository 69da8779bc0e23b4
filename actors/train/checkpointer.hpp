#pragma once

#include <string>

#include <caf/event_based_actor.hpp>

#include "actors/config/job_config.hpp"
#include "actors/train/messages.hpp"
#include "actors/train/replica.hpp"

namespace troupe::train {

/// To the checkpointer, from the reducer of its node. Answered with Saved when it is on disk.
struct Write {
  Replica::Snapshot snapshot;
  bool final_weights = false;  ///< the weights alone too, as the job's result
};

/// Writes checkpoints on a thread of its own, so that steps go on meanwhile. Detached. `data_hash`
/// is of the data that the job reads.
caf::behavior checkpointer(caf::event_based_actor* self, JobConfig config, std::string data_hash);

}  // namespace troupe::train

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Write)
