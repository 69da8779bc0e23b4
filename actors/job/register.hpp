#pragma once

#include <memory>

#include <caf/actor_system_config.hpp>

#include "actors/train/node_context.hpp"

namespace troupe::train {

/// Actor types of a training job, as the graph names them.
inline constexpr const char* kLoaderType = "troupe.loader";
inline constexpr const char* kTrainerType = "troupe.trainer";
/// The same on a thread of its own: for passes that wait for other ranks, or for a device.
inline constexpr const char* kDetachedTrainerType = "troupe.trainer.detached";
inline constexpr const char* kReducerType = "troupe.reducer";
/// Prepares a node for a job.
inline constexpr const char* kWarmerType = "troupe.warmer";
/// Finds a job's actors on a node for a new head.
inline constexpr const char* kSurveyorType = "troupe.surveyor";

/// Adds the training actors and all their messages to an actor system, so that a head can place
/// them on this node: give it to RuntimeOptions::configure. What the actors of one node share
/// lives in `context`.
void register_actors(caf::actor_system_config& config, std::shared_ptr<NodeContext> context);

}  // namespace troupe::train
