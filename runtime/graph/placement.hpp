#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/graph/graph.hpp"

namespace troupe::graph {

/// What a node has to offer to a placement.
struct NodeOffer {
  NodeId node;
  std::string name;  ///< for people
  std::string host;
  std::uint32_t slots = 1;  ///< 0: gets a replica only where no node with slots will do
  std::uint32_t gpus = 0;
  std::map<std::string, std::string> labels;
};

/// The offer of a member of the cluster's view. A template, so that a graph needs no cluster.
template <class Member>
NodeOffer offer_of(const Member& member) {
  return {member.node, member.name, member.host, member.slots, 0, {}};
}

/// What each of a graph's replicas is connected to, for one edge: consumers by producer replica.
using Pairs = std::vector<std::vector<std::uint32_t>>;

/// The map of ranks and replicas to nodes that holds for one generation. Deterministic: a function
/// of the graph, the offers in their order, and the number of ranks.
struct Placement {
  std::uint64_t generation = 0;
  std::vector<NodeOffer> nodes;                      ///< as they were offered
  std::vector<std::uint32_t> rank_nodes;             ///< by rank: index into `nodes`
  std::vector<std::vector<std::uint32_t>> replicas;  ///< by actor, by replica: likewise
  std::vector<Pairs> pairs;                          ///< by connection of the graph

  NodeId node_of_rank(std::uint32_t rank) const { return nodes[rank_nodes[rank]].node; }
  const NodeOffer& node_of(std::uint32_t actor, std::uint32_t replica) const {
    return nodes[replicas[actor][replica]];
  }
};

/// Shares `count` things out over `weights.size()` places: a run of neighbours to each, within one
/// of its exact share. Among the ways to do so the one whose runs consist of the fewest aligned
/// blocks (runs of 2^k that begin at a multiple of 2^k, the sub-trees of the reduction); then the
/// one that gives more to the first. At least one weight must not be 0.
std::vector<std::uint32_t> share_out(std::uint32_t count, std::span<const std::uint32_t> weights);

/// Places a valid graph's ranks and replicas on `nodes`. Errors, all naming the actor: those of
/// Graph::validate, `invalid_argument` (no ranks, replicas that do not fit an edge's pattern),
/// `resource_exhausted` (no node offers what it needs).
Result<Placement> place(const Graph& graph, std::span<const NodeOffer> nodes, std::uint32_t ranks,
                        std::uint64_t generation = 1);

/// The replica as its arguments are made from it.
Replica replica_of(const Graph& graph, const Placement& placement, std::uint32_t actor,
                   std::uint32_t index);

}  // namespace troupe::graph
