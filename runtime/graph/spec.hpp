#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <caf/message.hpp>

#include "runtime/base/node_id.hpp"

namespace troupe::graph {

/// How many of an actor there are, and where they have to be.
struct Replicas {
  enum class Kind : std::uint8_t { per_rank, per_node, per_host, fixed };
  Kind kind = Kind::fixed;
  std::uint32_t count = 1;  ///< for `fixed` only

  bool operator==(const Replicas&) const = default;
};
/// One for each rank, where the rank is.
constexpr Replicas per_rank() {
  return {Replicas::Kind::per_rank, 0};
}
/// One on each node that has slots.
constexpr Replicas per_node() {
  return {Replicas::Kind::per_node, 0};
}
/// One on each host, on its first node that has slots.
constexpr Replicas per_host() {
  return {Replicas::Kind::per_host, 0};
}
/// `count` of them, spread over the nodes by their slots.
constexpr Replicas fixed(std::uint32_t count) {
  return {Replicas::Kind::fixed, count};
}
/// "per rank", "fixed(3)".
std::string to_string(Replicas replicas);

/// What a node must offer to be given a replica. It is not used up: ranks share the slots and GPUs
/// of their node, so that a job fits on any number of nodes.
struct Resources {
  std::uint32_t slots = 0;
  std::uint32_t gpus = 0;
  std::map<std::string, std::string> labels = {};  ///< "host" is one that every node has

  bool operator==(const Resources&) const = default;
};

/// One replica and its place, as an actor's arguments are made from it.
struct Replica {
  std::uint32_t index = 0;
  std::uint32_t count = 0;            ///< of this actor's replicas
  std::optional<std::uint32_t> rank;  ///< of actors per rank
  std::uint32_t ranks = 0;            ///< of the job
  std::uint64_t generation = 0;       ///< of the placement
  NodeId node;
  std::string node_name;
  std::string host;
};

/// An actor of a graph. In the graph it is a type; how many of it run is a matter of placement.
struct ActorSpec {
  std::string name;  ///< in the graph
  std::string type;  ///< as given to caf::actor_system_config::add_actor_type; empty: `name`
  Replicas replicas;
  Resources needs;
  /// What each replica is spawned with; nothing if empty.
  std::function<caf::message(const Replica&)> arguments;
};

/// Which producers and consumers of an edge are connected.
enum class Pattern : std::uint8_t {
  one_to_one = 0,  ///< replica i to replica i
  local = 1,       ///< to each replica on the same node (the same host, if one side is per host)
  all_to_all = 2,  ///< each to each; a value goes to one of them
  broadcast = 3,   ///< the only replica to each; a value goes to all of them
  gather = 4,      ///< each to the only replica
};
/// "one to one".
std::string_view to_string(Pattern pattern) noexcept;

/// How an output is connected to an input.
struct Edge {
  Pattern pattern = Pattern::one_to_one;
  /// How many messages of one producer replica one consumer replica may have that are not yet
  /// consumed. More keeps both busy, less bounds memory.
  std::uint32_t capacity = 16;
  /// Closes a cycle on purpose: the graph without such edges has none.
  bool feedback = false;
};

/// Whether a port may stay unconnected.
enum class PortUse : std::uint8_t { required, optional };

}  // namespace troupe::graph
