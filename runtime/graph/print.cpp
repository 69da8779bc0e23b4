#include "runtime/graph/print.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace troupe::graph {
namespace {

using Row = std::vector<std::string>;

/// Columns two spaces apart, as wide as their widest cell; nothing behind the last.
std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:<{}}", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string needs_text(const Resources& needs) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (needs.slots > 0) add(fmt::format("{} slot{}", needs.slots, needs.slots == 1 ? "" : "s"));
  if (needs.gpus > 0) add(fmt::format("{} gpu{}", needs.gpus, needs.gpus == 1 ? "" : "s"));
  for (const auto& [key, value] : needs.labels) add(key + "=" + value);
  return text;
}

const std::string& type_of(const Graph& graph, const Graph::Connection& connection) {
  return graph.actors()[connection.from.actor].outputs[connection.from.port].type;
}

/// "0-3,6" of sorted numbers.
std::string ranges(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string on_node(const std::vector<std::uint32_t>& places, std::uint32_t node) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < places.size(); ++i)
    if (places[i] == node) numbers.push_back(i);
  return numbers.empty() ? "-" : ranges(numbers);
}

/// A quoted string of DOT; its records' own signs too if `record`.
std::string dot_escape(std::string_view text, bool record = false) {
  std::string escaped;
  for (char c : text) {
    if (c == '"' || c == '\\' ||
        (record && std::string_view("{}|<> ").find(c) != std::string_view::npos))
      escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

/// The fields of a record for one side's ports, put into `frame`; nothing if there are none.
std::string dot_ports(const std::vector<Graph::Port>& ports, char prefix, const char* frame) {
  std::string text;
  for (std::size_t i = 0; i < ports.size(); ++i)
    text +=
        fmt::format("{}<{}{}> {}", i == 0 ? "" : "|", prefix, i, dot_escape(ports[i].name, true));
  return text.empty() ? text : fmt::format(fmt::runtime(frame), text);
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::vector<Row> actors{{"actor", "type", "replicas", "needs"}};
  for (const auto& actor : graph.actors())
    actors.push_back({actor.spec.name, actor.spec.type, to_string(actor.spec.replicas),
                      needs_text(actor.spec.needs)});
  std::string text = fmt::format("graph {}\n\n{}", graph.name(), table(actors));
  if (graph.connections().empty()) return text;

  std::vector<Row> edges{{"from", "", "to", "type", "pattern", "capacity"}};
  for (const auto& c : graph.connections())
    edges.push_back({graph.output_name(c.from), "->", graph.input_name(c.to), type_of(graph, c),
                     std::string(to_string(c.edge.pattern)), std::to_string(c.edge.capacity),
                     c.edge.feedback ? "feedback" : ""});
  return text + "\n" + table(edges);
}

std::string to_text(const Graph& graph, const Placement& placement) {
  std::vector<Row> rows{{"node", "host", "ranks"}};
  for (const auto& actor : graph.actors()) rows.front().push_back(actor.spec.name);
  for (std::uint32_t n = 0; n < placement.nodes.size(); ++n) {
    const NodeOffer& node = placement.nodes[n];
    Row row{node.name.empty() ? short_name(node.node) : node.name, node.host,
            on_node(placement.rank_nodes, n)};
    for (const auto& replicas : placement.replicas) row.push_back(on_node(replicas, n));
    rows.push_back(std::move(row));
  }
  return to_text(graph) +
         fmt::format("\nplacement, generation {}\n\n{}", placement.generation, table(rows));
}

std::string to_dot(const Graph& graph) {
  std::string text = fmt::format("digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=record];\n",
                                 dot_escape(graph.name()));
  for (std::size_t i = 0; i < graph.actors().size(); ++i) {
    const auto& actor = graph.actors()[i];
    text += fmt::format("  a{} [label=\"{{{}{}\\n{}{}}}\"];\n", i,
                        dot_ports(actor.inputs, 'i', "{{{}}}|"), dot_escape(actor.spec.name, true),
                        dot_escape(to_string(actor.spec.replicas), true),
                        dot_ports(actor.outputs, 'o', "|{{{}}}"));
  }
  for (const auto& c : graph.connections())
    text +=
        fmt::format("  a{}:o{} -> a{}:i{} [label=\"{}\\n{}, {}\"{}];\n", c.from.actor, c.from.port,
                    c.to.actor, c.to.port, dot_escape(type_of(graph, c)), to_string(c.edge.pattern),
                    c.edge.capacity, c.edge.feedback ? ", style=dashed" : "");
  return text + "}\n";
}

}  // namespace troupe::graph
