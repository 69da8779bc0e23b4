#pragma once

#include <memory>

#include <caf/event_based_actor.hpp>

#include "actors/train/node_context.hpp"
#include "actors/train/setup.hpp"

namespace troupe::train {

/// One per node of a job: adds up its trainers' gradients, reduces them with the other reducers,
/// updates the node's weights, and sets the pace: it begins each step, the evaluation after each
/// epoch, and the checkpoints.
///
/// Says Ready to the job, waits to be connected and for Begin, then runs by itself until the last
/// step, a Halt, or a Failed.
caf::behavior reducer(caf::event_based_actor* self, std::shared_ptr<NodeContext> context,
                      Setup setup);

}  // namespace troupe::train
