// What can be said about a graph before anybody knows the nodes.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/graph/graph.hpp"

namespace troupe::graph {
namespace {

using Kind = Replicas::Kind;

class Validator {
public:
  explicit Validator(const Graph& graph) : graph_(graph) {}

  std::vector<Error> run() {
    if (graph_.name().empty()) add("a graph has no name; give it one");
    if (graph_.actors().empty()) problem("it has no actors; add at least one");
    check_names();
    check_ports_connected();
    for (const auto& connection : graph_.connections()) check_edge(connection);
    check_duplicate_edges();
    if (auto cycle = find_cycle()) problem(*cycle);
    return std::move(problems_);
  }

private:
  void add(std::string sentence) {
    problems_.push_back({Code::invalid_argument, std::move(sentence)});
  }
  void problem(const std::string& what) { add(fmt::format("graph '{}': {}", graph_.name(), what)); }

  const ActorSpec& spec(PortRef port) const { return graph_.actors()[port.actor].spec; }

  void check_names() {
    std::set<std::string> names;
    for (const auto& actor : graph_.actors()) {
      const std::string& name = actor.spec.name;
      if (name.empty()) {
        problem("an actor has no name; give each one of its own");
      } else if (!names.insert(name).second) {
        problem(fmt::format("two actors are named '{}'; give each a name of its own", name));
      }
      if (actor.spec.replicas == fixed(0))
        problem(fmt::format("actor '{}' has 0 replicas; ask for at least 1", name));
      check_port_names(name, "input", actor.inputs);
      check_port_names(name, "output", actor.outputs);
    }
  }

  void check_port_names(const std::string& actor, const char* direction,
                        const std::vector<Graph::Port>& ports) {
    std::set<std::string> names;
    for (const auto& port : ports) {
      if (port.name.empty()) {
        problem(fmt::format("actor '{}' has an {} without a name; give it one", actor, direction));
      } else if (!names.insert(port.name).second) {
        problem(fmt::format("actor '{}' has two {}s named '{}'; give each a name of its own", actor,
                            direction, port.name));
      }
    }
  }

  void check_ports_connected() {
    std::set<std::pair<std::uint32_t, std::uint32_t>> fed, drained;
    for (const auto& connection : graph_.connections()) {
      drained.insert({connection.from.actor, connection.from.port});
      fed.insert({connection.to.actor, connection.to.port});
    }
    for (std::uint32_t a = 0; a < graph_.actors().size(); ++a) {
      const auto& actor = graph_.actors()[a];
      for (std::uint32_t p = 0; p < actor.inputs.size(); ++p)
        if (actor.inputs[p].use == PortUse::required && !fed.contains({a, p}))
          problem(
              fmt::format("input '{}.{}' is not connected; connect an output of type {} to it, "
                          "or make it optional",
                          actor.spec.name, actor.inputs[p].name, actor.inputs[p].type));
      for (std::uint32_t p = 0; p < actor.outputs.size(); ++p)
        if (actor.outputs[p].use == PortUse::required && !drained.contains({a, p}))
          problem(
              fmt::format("output '{}.{}' is not connected; connect it to an input of type {}, "
                          "or make it optional",
                          actor.spec.name, actor.outputs[p].name, actor.outputs[p].type));
    }
  }

  void check_edge(const Graph::Connection& connection) {
    const ActorSpec& from = spec(connection.from);
    const ActorSpec& to = spec(connection.to);
    const auto complain = [&](const std::string& what) {
      problem(fmt::format("{} {}", graph_.describe(connection), what));
    };
    if (connection.edge.capacity == 0) complain("has capacity 0; it needs at least 1");
    switch (connection.edge.pattern) {
      case Pattern::one_to_one:
        if (from.replicas != to.replicas)
          complain(
              fmt::format("is one to one, but '{}' is {} and '{}' is {}; give both the same "
                          "replicas, or the edge another pattern",
                          from.name, to_string(from.replicas), to.name, to_string(to.replicas)));
        break;
      case Pattern::local:
        if (!one_per_place(from) && !one_per_place(to))
          complain(
              fmt::format("is local, but '{}' is {} and '{}' is {}; one of them must be per "
                          "node or per host",
                          from.name, to_string(from.replicas), to.name, to_string(to.replicas)));
        break;
      case Pattern::broadcast:
        if (from.replicas != fixed(1))
          complain(fmt::format("is a broadcast, but '{}' is {}; it must be fixed(1)", from.name,
                               to_string(from.replicas)));
        break;
      case Pattern::gather:
        if (to.replicas != fixed(1))
          complain(fmt::format("is a gather, but '{}' is {}; it must be fixed(1)", to.name,
                               to_string(to.replicas)));
        break;
      case Pattern::all_to_all:
        break;
    }
  }

  static bool one_per_place(const ActorSpec& actor) {
    return actor.replicas.kind == Kind::per_node || actor.replicas.kind == Kind::per_host;
  }

  void check_duplicate_edges() {
    const auto& all = graph_.connections();
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (all[i].from == all[j].from && all[i].to == all[j].to) {
          problem(
              fmt::format("{} is there twice; connect two ports once", graph_.describe(all[i])));
          break;
        }
  }

  enum class Mark : std::uint8_t { unseen, on_path, done };

  /// Depth-first along edges that are not feedback; the sentence for the first cycle.
  std::optional<std::string> find_cycle() const {
    std::vector<std::vector<const Graph::Connection*>> outgoing(graph_.actors().size());
    for (const auto& connection : graph_.connections())
      if (!connection.edge.feedback) outgoing[connection.from.actor].push_back(&connection);

    struct Step {
      std::uint32_t actor;
      std::size_t next = 0;
    };
    std::vector<Mark> marks(graph_.actors().size(), Mark::unseen);
    for (std::uint32_t root = 0; root < marks.size(); ++root) {
      if (marks[root] != Mark::unseen) continue;
      std::vector<Step> path{{root}};
      std::vector<const Graph::Connection*> taken;
      marks[root] = Mark::on_path;
      while (!path.empty()) {
        Step& top = path.back();
        if (top.next == outgoing[top.actor].size()) {
          marks[top.actor] = Mark::done;
          path.pop_back();
          if (!taken.empty()) taken.pop_back();
          continue;
        }
        const auto* edge = outgoing[top.actor][top.next++];
        if (marks[edge->to.actor] == Mark::done) continue;
        taken.push_back(edge);
        if (marks[edge->to.actor] == Mark::on_path) return describe_cycle(taken, edge->to.actor);
        marks[edge->to.actor] = Mark::on_path;
        path.push_back({edge->to.actor});
      }
    }
    return std::nullopt;
  }

  std::string describe_cycle(const std::vector<const Graph::Connection*>& path,
                             std::uint32_t start) const {
    auto edge = std::find_if(path.begin(), path.end(),
                             [&](const auto* e) { return e->from.actor == start; });
    std::string text;
    for (; edge != path.end(); ++edge)
      text += fmt::format("{}'{}' -> '{}'", text.empty() ? "" : ", ",
                          graph_.output_name((*edge)->from), graph_.input_name((*edge)->to));
    return fmt::format("there is a cycle: {}; mark the edge that closes it as feedback", text);
  }

  const Graph& graph_;
  std::vector<Error> problems_;
};

}  // namespace

std::vector<Error> Graph::problems() const {
  auto found = Validator(*this).run();
  found.insert(found.end(), foreign_ports_.begin(), foreign_ports_.end());
  return found;
}

Status Graph::validate() const {
  auto found = problems();
  return found.empty() ? Status{} : Status{std::move(found.front())};
}

}  // namespace troupe::graph
