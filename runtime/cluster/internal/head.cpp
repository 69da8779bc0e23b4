#include "runtime/cluster/internal/head.hpp"

#include <utility>

namespace troupe::cluster {

void Head::lead(membership::HeadMachine::Options options) {
  options_ = std::move(options);
  begin();
}

void Head::depose(const Error& reason) {
  run([this, reason] { machine_->deposed(reason, now()); });
}

std::unique_ptr<membership::Machine> Head::make_machine(TimePoint now) {
  auto machine = std::make_unique<membership::HeadMachine>(options_, now);
  machine_ = machine.get();
  return machine;
}

void Head::before_tick(TimePoint now) {
  for (const NodeId node : processes_.ended()) machine_->process_ended(node, now);
}

void Head::after_view(const View& view, const std::vector<Departure>& departures) {
  for (const auto& departure : departures) processes_.forget(departure.node);
  const Member& self = options_.self;
  for (const auto& member : view.members)
    if (member.joined == view.generation && member.host == self.host &&
        member.process != self.process)
      processes_.watch(member.node, member.process);
}

}  // namespace troupe::cluster
