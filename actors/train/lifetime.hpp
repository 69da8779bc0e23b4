#pragma once

#include <caf/event_based_actor.hpp>

namespace troupe::train {

/// Ends `self` when the job actor is gone, with its node or without: a job that nobody follows has
/// no actors. Call before anything that can fail.
inline void end_with_the_job(caf::event_based_actor* self, const caf::actor& job_actor) {
  self->monitor(job_actor);
  self->set_down_handler(
      [self](const caf::down_msg&) { self->quit(caf::exit_reason::user_shutdown); });
}

}  // namespace troupe::train
