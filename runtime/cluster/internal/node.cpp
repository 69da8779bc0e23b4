#include "runtime/cluster/internal/node.hpp"

#include <utility>

namespace troupe::cluster {

void Node::join(membership::NodeMachine::Options options) {
  options_ = std::move(options);
  begin();
}

std::unique_ptr<membership::Machine> Node::make_machine(TimePoint now) {
  return std::make_unique<membership::NodeMachine>(options_, now);
}

}  // namespace troupe::cluster
