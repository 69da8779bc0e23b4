#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/meta/type_name.hpp>

#include "runtime/graph/spec.hpp"

namespace troupe::graph {

/// A replica at the other end of an edge.
struct Peer {
  std::uint32_t replica = 0;
  caf::actor actor;
};

// What a deployment says to actors. Each is a request; an error as response fails the deployment.

/// One of the actor's ports is connected. All actors of a graph hear of all their connections
/// before any of them hears Start.
struct Connected {
  std::string port;
  bool output = false;     ///< an output of the receiver, otherwise an input
  std::uint32_t edge = 0;  ///< number of the connection in the graph
  Pattern pattern = Pattern::one_to_one;
  std::uint32_t capacity = 0;
  std::uint32_t replica = 0;  ///< of the receiver
  std::vector<Peer> peers;
};
struct Start {};

// What the ends of an edge say to each other.

/// Goes with each value, in one message: (Delivery, T).
struct Delivery {
  std::uint32_t edge = 0;
  std::uint32_t replica = 0;   ///< of the producer
  std::uint64_t sequence = 0;  ///< from 0, by pair of replicas
};
/// The consumer is done with `count` values more.
struct Credit {
  std::uint32_t edge = 0;
  std::uint32_t replica = 0;  ///< of the consumer
  std::uint32_t count = 0;
};
/// The producer sends no more.
struct Finished {
  std::uint32_t edge = 0;
  std::uint32_t replica = 0;  ///< of the producer
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Peer& x) {
  return f(caf::meta::type_name("Peer"), x.replica, x.actor);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Connected& x) {
  return f(caf::meta::type_name("Connected"), x.port, x.output, x.edge, x.pattern, x.capacity,
           x.replica, x.peers);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Start&) {
  return f(caf::meta::type_name("Start"));
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Delivery& x) {
  return f(caf::meta::type_name("Delivery"), x.edge, x.replica, x.sequence);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Credit& x) {
  return f(caf::meta::type_name("Credit"), x.edge, x.replica, x.count);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Finished& x) {
  return f(caf::meta::type_name("Finished"), x.edge, x.replica);
}

/// Makes these messages known to an actor system, so that they travel between nodes. Once for each
/// configuration; the values that flow along edges are added by the program.
void add_message_types(caf::actor_system_config& config);

}  // namespace troupe::graph
