#include "runtime/membership/machine.hpp"

#include <utility>

namespace troupe::membership {

std::vector<Action> Machine::take_actions() {
  return std::exchange(actions_, {});
}

void Machine::act(Action action) {
  actions_.push_back(std::move(action));
}

}  // namespace troupe::membership
