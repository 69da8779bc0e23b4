#pragma once

#include <memory>

#include <caf/event_based_actor.hpp>

#include "actors/train/node_context.hpp"
#include "actors/train/setup.hpp"

namespace troupe::train {

/// One per rank: takes the rank's batch of each step from its loader, runs forward and backward on
/// the node's weights, and hands the gradient, bucket by bucket, to the reducer of its node.
///
/// Computes inside its message handler, on one of the scheduler's threads.
caf::behavior trainer(caf::event_based_actor* self, std::shared_ptr<NodeContext> context,
                      Setup setup);

}  // namespace troupe::train
