#include "actors/train/messages.hpp"

#include "actors/train/non_finite.hpp"
#include "actors/train/setup.hpp"
#include "actors/train/surveyor.hpp"
#include "actors/train/warmer.hpp"

namespace troupe::train {

void add_train_message_types(caf::actor_system_config& config) {
  config.add_message_type<Setup>("troupe::train::Setup");
  config.add_message_type<Ready>("troupe::train::Ready");
  config.add_message_type<Begin>("troupe::train::Begin");
  config.add_message_type<Adopt>("troupe::train::Adopt");
  config.add_message_type<Report>("troupe::train::Report");
  config.add_message_type<Reported>("troupe::train::Reported");
  config.add_message_type<Survey>("troupe::train::Survey");
  config.add_message_type<Surveyed>("troupe::train::Surveyed");
  config.add_message_type<WarmUp>("troupe::train::WarmUp");
  config.add_message_type<Warm>("troupe::train::Warm");
  config.add_message_type<Pull>("troupe::train::Pull");
  config.add_message_type<Pulled>("troupe::train::Pulled");
  config.add_message_type<CopyState>("troupe::train::CopyState");
  config.add_message_type<StateCopy>("troupe::train::StateCopy");
  config.add_message_type<StepBegun>("troupe::train::StepBegun");
  config.add_message_type<NextBatch>("troupe::train::NextBatch");
  config.add_message_type<Batch>("troupe::train::Batch");
  config.add_message_type<RankValues>("troupe::train::RankValues");
  config.add_message_type<SummedValues>("troupe::train::SummedValues");
  config.add_message_type<Evaluate>("troupe::train::Evaluate");
  config.add_message_type<Evaluated>("troupe::train::Evaluated");
  config.add_message_type<Halt>("troupe::train::Halt");
  config.add_message_type<Halted>("troupe::train::Halted");
  config.add_message_type<Release>("troupe::train::Release");
  config.add_message_type<Released>("troupe::train::Released");
  config.add_message_type<Save>("troupe::train::Save");
  config.add_message_type<Saved>("troupe::train::Saved");
  config.add_message_type<Pace>("troupe::train::Pace");
  config.add_message_type<NonFinite>("troupe::train::NonFinite");
  config.add_message_type<Failed>("troupe::train::Failed");
  config.add_message_type<LastStepDone>("troupe::train::LastStepDone");
}

}  // namespace troupe::train
