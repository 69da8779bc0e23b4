#include "runtime/graph/placement.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

namespace troupe::graph {
namespace {

using Kind = Replicas::Kind;
using Indices = std::vector<std::uint32_t>;

class Placer {
public:
  Placer(const Graph& graph, std::span<const NodeOffer> nodes, std::uint32_t ranks)
      : graph_(graph), ranks_(ranks) {
    placement_.nodes.assign(nodes.begin(), nodes.end());
  }

  Result<Placement> run(std::uint64_t generation) {
    placement_.generation = generation;
    TROUPE_TRY(check_nodes());
    TROUPE_TRY(place_ranks());
    for (const auto& actor : graph_.actors()) {
      TROUPE_ASSIGN(Indices replicas, place_replicas(actor.spec));
      placement_.replicas.push_back(std::move(replicas));
    }
    for (const auto& connection : graph_.connections()) {
      TROUPE_ASSIGN(Pairs pairs, connect(connection));
      placement_.pairs.push_back(std::move(pairs));
    }
    return std::move(placement_);
  }

private:
  const std::vector<NodeOffer>& nodes() const { return placement_.nodes; }

  Status check_nodes() const {
    if (nodes().empty())
      return {Code::resource_exhausted,
              fmt::format("graph '{}' has no node to run on; start at least one", graph_.name())};
    std::set<NodeId> seen;
    for (const auto& node : nodes())
      if (!seen.insert(node.node).second)
        return {Code::invalid_argument,
                fmt::format("node '{}' ({}) is offered twice; offer each once", node.name,
                            short_name(node.node))};
    return {};
  }

  static bool has_label(const NodeOffer& node, const std::string& key, const std::string& value) {
    if (key == "host") return node.host == value;
    const auto found = node.labels.find(key);
    return found != node.labels.end() && found->second == value;
  }

  static bool offers(const NodeOffer& node, const Resources& needs) {
    return node.slots >= needs.slots && node.gpus >= needs.gpus &&
           std::all_of(needs.labels.begin(), needs.labels.end(), [&](const auto& label) {
             return has_label(node, label.first, label.second);
           });
  }

  Indices nodes_where(const std::function<bool(const NodeOffer&)>& fits) const {
    Indices found;
    for (std::uint32_t i = 0; i < nodes().size(); ++i)
      if (fits(nodes()[i])) found.push_back(i);
    return found;
  }

  /// The sentence for an actor that no node can take: the first need that nobody has by itself,
  /// else that nobody has them all.
  Error unplaceable(const ActorSpec& actor) const {
    const auto most = [&](auto member) {
      std::uint32_t highest = 0;
      for (const auto& node : nodes()) highest = std::max(highest, node.*member);
      return highest;
    };
    const auto counted = [&](std::uint32_t need, std::uint32_t highest, const char* what) {
      const std::string offered =
          highest == 0 ? "no node offers one" : fmt::format("no node offers more than {}", highest);
      return fmt::format("needs {} {}{}; {}", need, what, need == 1 ? "" : "s", offered);
    };
    const Resources& needs = actor.needs;
    std::string why = "needs more than any single node offers; lower its needs or add a node";
    if (const auto gpus = most(&NodeOffer::gpus); gpus < needs.gpus) {
      why = counted(needs.gpus, gpus, "gpu");
    } else if (const auto slots = most(&NodeOffer::slots); slots < needs.slots) {
      why = counted(needs.slots, slots, "slot");
    } else {
      for (const auto& label : needs.labels)
        if (nodes_where([&](const auto& node) {
              return has_label(node, label.first, label.second);
            }).empty()) {
          why = fmt::format("needs the label {}={}; no node has it", label.first, label.second);
          break;
        }
    }
    return {Code::resource_exhausted,
            fmt::format("graph '{}': actor '{}' {}", graph_.name(), actor.name, why)};
  }

  Indices weights_of(const Indices& places) const {
    Indices weights;
    for (auto i : places) weights.push_back(nodes()[i].slots);
    // Where nobody has slots all are alike.
    if (std::all_of(weights.begin(), weights.end(), [](auto w) { return w == 0; }))
      std::fill(weights.begin(), weights.end(), 1);
    return weights;
  }

  Indices spread(std::uint32_t count, const Indices& places) const {
    const auto sizes = share_out(count, weights_of(places));
    Indices result;
    for (std::size_t i = 0; i < places.size(); ++i)
      result.insert(result.end(), sizes[i], places[i]);
    return result;
  }

  /// A rank goes where every actor per rank can run.
  Status place_ranks() {
    auto fit = nodes_where([](const auto& node) { return node.slots > 0; });
    if (fit.empty()) fit = nodes_where([](const auto&) { return true; });
    for (const auto& actor : graph_.actors()) {
      const ActorSpec& spec = actor.spec;
      if (spec.replicas.kind != Kind::per_rank) continue;
      if (ranks_ == 0)
        return {Code::invalid_argument,
                fmt::format("graph '{}': actor '{}' has one replica per rank, and there are 0 "
                            "ranks; ask for at least 1",
                            graph_.name(), spec.name)};
      std::erase_if(fit, [&](auto i) { return !offers(nodes()[i], spec.needs); });
      if (fit.empty()) return unplaceable(spec);
    }
    placement_.rank_nodes = spread(ranks_, fit);
    return {};
  }

  Result<Indices> place_replicas(const ActorSpec& actor) const {
    if (actor.replicas.kind == Kind::per_rank) return placement_.rank_nodes;
    auto fit = nodes_where([&](const auto& node) { return offers(node, actor.needs); });
    if (fit.empty()) return unplaceable(actor);
    if (std::any_of(fit.begin(), fit.end(), [&](auto i) { return nodes()[i].slots > 0; }))
      std::erase_if(fit, [&](auto i) { return nodes()[i].slots == 0; });
    if (actor.replicas.kind == Kind::fixed) return spread(actor.replicas.count, fit);
    if (actor.replicas.kind == Kind::per_host) {
      std::set<std::string> hosts;
      std::erase_if(fit, [&](auto i) { return !hosts.insert(nodes()[i].host).second; });
    }
    return fit;
  }

  Error misfit(const Graph::Connection& connection, const std::string& what) const {
    return {Code::invalid_argument,
            fmt::format("graph '{}': {} {}", graph_.name(), graph_.describe(connection), what)};
  }

  Result<Pairs> connect(const Graph::Connection& connection) const {
    const Indices& from = placement_.replicas[connection.from.actor];
    const Indices& to = placement_.replicas[connection.to.actor];
    Pairs pairs(from.size());
    if (connection.edge.pattern == Pattern::one_to_one) {
      if (from.size() != to.size())
        return misfit(connection, fmt::format("is one to one, but has {} producers and {} "
                                              "consumers on these nodes; give both the same needs",
                                              from.size(), to.size()));
      for (std::uint32_t i = 0; i < from.size(); ++i) pairs[i].push_back(i);
      return pairs;
    }
    const bool local = connection.edge.pattern == Pattern::local;
    for (std::uint32_t p = 0; p < from.size(); ++p) {
      for (std::uint32_t c = 0; c < to.size(); ++c)
        if (!local || same_place(connection, from[p], to[c])) pairs[p].push_back(c);
      // An actor of which there is one on each node may have nothing to talk to on some of them.
      if (pairs[p].empty() && !per_place(connection.from))
        return misfit(connection,
                      fmt::format("is local, and replica {} of '{}' on node '{}' has no replica of "
                                  "'{}' there; give both the same needs",
                                  p, spec(connection.from).name, nodes()[from[p]].name,
                                  spec(connection.to).name));
    }
    if (local && !per_place(connection.to)) TROUPE_TRY(check_all_fed(connection, pairs));
    return pairs;
  }

  Status check_all_fed(const Graph::Connection& connection, const Pairs& pairs) const {
    const Indices& to = placement_.replicas[connection.to.actor];
    std::vector<bool> fed(to.size());
    for (const auto& consumers : pairs)
      for (auto c : consumers) fed[c] = true;
    const auto hungry = std::find(fed.begin(), fed.end(), false);
    if (hungry == fed.end()) return {};
    const auto c = static_cast<std::uint32_t>(hungry - fed.begin());
    return misfit(
        connection,
        fmt::format("is local, and no replica of '{}' is there for replica {} of '{}' on "
                    "node '{}'; give both the same needs",
                    spec(connection.from).name, c, spec(connection.to).name, nodes()[to[c]].name));
  }

  const ActorSpec& spec(PortRef port) const { return graph_.actors()[port.actor].spec; }
  bool per_place(PortRef port) const {
    const auto kind = spec(port).replicas.kind;
    return kind == Kind::per_node || kind == Kind::per_host;
  }

  bool same_place(const Graph::Connection& connection, std::uint32_t a, std::uint32_t b) const {
    const bool by_host = spec(connection.from).replicas.kind == Kind::per_host ||
                         spec(connection.to).replicas.kind == Kind::per_host;
    return a == b || (by_host && nodes()[a].host == nodes()[b].host);
  }

  const Graph& graph_;
  const std::uint32_t ranks_;
  Placement placement_;
};

}  // namespace

Result<Placement> place(const Graph& graph, std::span<const NodeOffer> nodes, std::uint32_t ranks,
                        std::uint64_t generation) {
  TROUPE_TRY(graph.validate());
  return Placer(graph, nodes, ranks).run(generation);
}

Replica replica_of(const Graph& graph, const Placement& placement, std::uint32_t actor,
                   std::uint32_t index) {
  const NodeOffer& node = placement.node_of(actor, index);
  Replica replica;
  replica.index = index;
  replica.count = static_cast<std::uint32_t>(placement.replicas[actor].size());
  if (graph.actors()[actor].spec.replicas.kind == Kind::per_rank) replica.rank = index;
  replica.ranks = static_cast<std::uint32_t>(placement.rank_nodes.size());
  replica.generation = placement.generation;
  replica.node = node.node;
  replica.node_name = node.name;
  replica.host = node.host;
  return replica;
}

}  // namespace troupe::graph
