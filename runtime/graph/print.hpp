#pragma once

#include <string>

#include "runtime/graph/graph.hpp"
#include "runtime/graph/placement.hpp"

namespace troupe::graph {

// A graph for people, the same text for the same graph. Threads: any.

/// Aligned tables of the actors and of the connections.
std::string to_text(const Graph& graph);
/// The same, and who is on which node.
std::string to_text(const Graph& graph, const Placement& placement);
/// For Graphviz: `dot -Tsvg`.
std::string to_dot(const Graph& graph);

}  // namespace troupe::graph
