#include "actors/train/surveyor.hpp"

namespace troupe::train {

caf::behavior surveyor(caf::event_based_actor* self, std::shared_ptr<NodeContext> context) {
  return {
      [self, context](const Survey& x) {
        self->quit();
        return Surveyed{context->enrolled(x.job)};
      },
  };
}

}  // namespace troupe::train
