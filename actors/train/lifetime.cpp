#include "actors/train/lifetime.hpp"

#include <caf/exit_reason.hpp>

namespace troupe::train {

std::shared_ptr<bool> live_with_the_job(caf::event_based_actor* self, NodeContext& context,
                                        Role role, const Setup& setup) {
  context.enroll(setup, role, self);
  self->monitor(setup.job_actor);
  auto started = std::make_shared<bool>(false);
  self->set_down_handler([self, started, waits = setup.outlives_head](const caf::down_msg& down) {
    if (waits && *started && down.reason == caf::exit_reason::remote_link_unreachable) return;
    self->quit(caf::exit_reason::user_shutdown);
  });
  return started;
}

}  // namespace troupe::train
