#include "actors/train/warmer.hpp"

#include <caf/exit_reason.hpp>

#include "actors/train/program.hpp"

namespace troupe::train {

caf::behavior warmer(caf::event_based_actor* self, std::shared_ptr<NodeContext> context,
                     Setup setup) {
  self->monitor(setup.job_actor);
  self->set_down_handler(
      [self](const caf::down_msg&) { self->quit(caf::exit_reason::user_shutdown); });
  auto job = context->job(setup);
  Warm warm;
  if (job.ok()) {
    warm.data_hash = (*job)->data_hash();
    warm.weights_hash = (*job)->replica().weights_hash();
    warm.program = program_hash();
    warm.instruction_set = (*job)->instruction_set();
  } else {
    warm.code = static_cast<std::uint16_t>(job.code());
    warm.message = job.error().message;
  }
  return {[warm, keeps = job.ok() ? *job : nullptr](WarmUp) { return warm; }};
}

}  // namespace troupe::train
