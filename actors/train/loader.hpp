#pragma once

#include <memory>

#include <caf/event_based_actor.hpp>

#include "actors/train/node_context.hpp"
#include "actors/train/setup.hpp"

namespace troupe::train {

/// One per rank: answers NextBatch with the rank's samples of that step, which are a pure function
/// of seed, step and rank, and makes the batches that come next while the trainer computes. Holds
/// no state that could be lost.
caf::behavior loader(caf::event_based_actor* self, std::shared_ptr<NodeContext> context,
                     Setup setup);

}  // namespace troupe::train
