#include "actors/job/register.hpp"

#include <cstdint>

#include <caf/abstract_actor.hpp>
#include <caf/actor_factory.hpp>

#include "actors/collective/reducer.hpp"
#include "actors/job/job_service.hpp"
#include "actors/train/loader.hpp"
#include "actors/train/messages.hpp"
#include "actors/train/reducer.hpp"
#include "actors/train/surveyor.hpp"
#include "actors/train/trainer.hpp"
#include "actors/train/warmer.hpp"
#include "runtime/graph/messages.hpp"

namespace troupe::train {
namespace {

using Behavior = caf::behavior (*)(caf::event_based_actor*, std::shared_ptr<NodeContext>, Setup);

enum class Thread : std::uint8_t { shared, own };

void add(caf::actor_system_config& config, const char* type, Behavior behavior,
         const std::shared_ptr<NodeContext>& context, Thread thread = Thread::shared) {
  auto make = caf::make_actor_factory(
      [behavior, context](caf::event_based_actor* self, Setup setup) -> caf::behavior {
        return behavior(self, context, std::move(setup));
      });
  config.add_actor_factory(type, [make, thread](caf::actor_config& own, caf::message& arguments) {
    if (thread == Thread::own) own.flags |= caf::abstract_actor::is_detached_flag;
    return make(own, arguments);
  });
}

}  // namespace

void register_actors(caf::actor_system_config& config, std::shared_ptr<NodeContext> context) {
  add_train_message_types(config);
  add_job_message_types(config);
  collective::add_message_types(config);
  graph::add_message_types(config);
  add(config, kLoaderType, loader, context);
  add(config, kTrainerType, trainer, context);
  add(config, kDetachedTrainerType, trainer, context, Thread::own);
  add(config, kReducerType, reducer, context);
  add(config, kWarmerType, warmer, context);
  config.add_actor_type(
      kSurveyorType, [context](caf::event_based_actor* self) { return surveyor(self, context); });
}

}  // namespace troupe::train
