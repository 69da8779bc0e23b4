#pragma once

#include <memory>

#include <caf/event_based_actor.hpp>

#include "actors/train/node_context.hpp"
#include "actors/train/setup.hpp"

namespace troupe::train {

/// What all of a job's actors do first, before anything that can fail: be known on their node, for
/// a new head that looks for them, and end with the job's actor, with its node or without: a job
/// that nobody follows has no actors. Only where the job may outlive its head they wait for Adopt
/// when that node is lost, once they are started: `*started` is for the graph's Start to set.
std::shared_ptr<bool> live_with_the_job(caf::event_based_actor* self, NodeContext& context,
                                        Role role, const Setup& setup);

}  // namespace troupe::train
