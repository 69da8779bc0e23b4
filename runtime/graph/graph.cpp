#include "runtime/graph/graph.hpp"

#include <utility>

#include <fmt/format.h>

namespace troupe::graph {

std::string to_string(Replicas replicas) {
  switch (replicas.kind) {
    case Replicas::Kind::per_rank:
      return "per rank";
    case Replicas::Kind::per_node:
      return "per node";
    case Replicas::Kind::per_host:
      return "per host";
    case Replicas::Kind::fixed:
      return fmt::format("fixed({})", replicas.count);
  }
  return "unknown";
}

std::string_view to_string(Pattern pattern) noexcept {
  switch (pattern) {
    case Pattern::one_to_one:
      return "one to one";
    case Pattern::local:
      return "local";
    case Pattern::all_to_all:
      return "all to all";
    case Pattern::broadcast:
      return "broadcast";
    case Pattern::gather:
      return "gather";
  }
  return "unknown";
}

Actor Graph::add(ActorSpec spec) {
  if (spec.type.empty()) spec.type = spec.name;
  actors_.push_back({std::move(spec), {}, {}});
  return Actor(*this, static_cast<std::uint32_t>(actors_.size() - 1));
}

PortRef Graph::add_port(std::uint32_t actor, bool is_output, Port port) {
  auto& ports = is_output ? actors_[actor].outputs : actors_[actor].inputs;
  ports.push_back(std::move(port));
  return {this, actor, static_cast<std::uint32_t>(ports.size() - 1)};
}

void Graph::add_connection(PortRef from, PortRef to, Edge edge) {
  if (from.graph == this && to.graph == this) {
    connections_.push_back({from, to, edge});
    return;
  }
  foreign_ports_.push_back(
      {Code::invalid_argument,
       fmt::format("graph '{}': a connection from '{}' to '{}' uses a port of another graph; "
                   "connect ports of actors that were added to this one",
                   name_, from.graph->output_name(from), to.graph->input_name(to))});
}

std::string Graph::output_name(PortRef port) const {
  const Node& node = actors_[port.actor];
  return node.spec.name + "." + node.outputs[port.port].name;
}

std::string Graph::input_name(PortRef port) const {
  const Node& node = actors_[port.actor];
  return node.spec.name + "." + node.inputs[port.port].name;
}

std::string Graph::describe(const Connection& connection) const {
  return fmt::format("edge '{}' -> '{}'", output_name(connection.from), input_name(connection.to));
}

}  // namespace troupe::graph
