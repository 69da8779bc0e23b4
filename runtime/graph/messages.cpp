#include "runtime/graph/messages.hpp"

namespace troupe::graph {

void add_message_types(caf::actor_system_config& config) {
  config.add_message_type<Connected>("troupe.graph.connected")
      .add_message_type<Start>("troupe.graph.start")
      .add_message_type<Delivery>("troupe.graph.delivery")
      .add_message_type<Credit>("troupe.graph.credit")
      .add_message_type<Finished>("troupe.graph.finished");
}

}  // namespace troupe::graph
