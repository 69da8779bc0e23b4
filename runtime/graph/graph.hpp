#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/graph/spec.hpp"
#include "runtime/graph/type_name.hpp"

namespace troupe::graph {

class Graph;

/// A port by the positions of its actor in the graph and of itself among the actor's inputs or
/// outputs.
struct PortRef {
  const Graph* graph = nullptr;
  std::uint32_t actor = 0;
  std::uint32_t port = 0;
  bool operator==(const PortRef&) const = default;
};

/// Where an actor's values of type T leave it. Valid as long as its graph, which does not move.
template <class T>
class Output {
public:
  using value_type = T;
  PortRef ref() const { return ref_; }

private:
  friend class Actor;
  explicit Output(PortRef ref) : ref_(ref) {}
  PortRef ref_;
};

/// Where values of type T enter an actor.
template <class T>
class Input {
public:
  using value_type = T;
  PortRef ref() const { return ref_; }

private:
  friend class Actor;
  explicit Input(PortRef ref) : ref_(ref) {}
  PortRef ref_;
};

/// An actor in a graph, to declare its ports with. Names are unique among an actor's inputs, and
/// among its outputs.
class Actor {
public:
  template <class T>
  Output<T> output(std::string name, PortUse use = PortUse::required) const;
  template <class T>
  Input<T> input(std::string name, PortUse use = PortUse::required) const;

private:
  friend class Graph;
  Actor(Graph& graph, std::uint32_t index) : graph_(&graph), index_(index) {}
  Graph* graph_;
  std::uint32_t index_;
};

/// What actors a program has, and what flows between them. Nothing runs: place() decides where
/// replicas go, and deploy() starts them.
///
/// A connection between ports of different types does not compile. What can only be seen once the
/// graph is whole is found by validate().
///
/// Ownership: a value that stays where it is; handles refer to it.
/// Threads:   one at a time while it is built, then any.
class Graph {
public:
  struct Port {
    std::string name;
    std::string type;
    PortUse use = PortUse::required;
  };
  struct Node {
    ActorSpec spec;
    std::vector<Port> inputs;
    std::vector<Port> outputs;
  };
  struct Connection {
    PortRef from;
    PortRef to;
    Edge edge;
  };

  explicit Graph(std::string name) : name_(std::move(name)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Actor add(ActorSpec spec);

  /// An output may feed several inputs (each gets every value), an input several outputs.
  template <class T>
  void connect(const Output<T>& from, const Input<T>& to, Edge edge = {}) {
    add_connection(from.ref(), to.ref(), edge);
  }

  /// Everything that is wrong with the graph, each an `invalid_argument` that names actor and port.
  std::vector<Error> problems() const;
  /// The first of them.
  Status validate() const;

  const std::string& name() const { return name_; }
  const std::vector<Node>& actors() const { return actors_; }
  const std::vector<Connection>& connections() const { return connections_; }

  /// "loader.batches" for people.
  std::string output_name(PortRef port) const;
  std::string input_name(PortRef port) const;
  /// "edge 'loader.batches' -> 'trainer.batches'".
  std::string describe(const Connection& connection) const;

private:
  friend class Actor;
  PortRef add_port(std::uint32_t actor, bool is_output, Port port);
  void add_connection(PortRef from, PortRef to, Edge edge);

  std::string name_;
  std::vector<Node> actors_;
  std::vector<Connection> connections_;
  std::vector<Error> foreign_ports_;  ///< connections that could not even be recorded
};

template <class T>
Output<T> Actor::output(std::string name, PortUse use) const {
  return Output<T>(
      graph_->add_port(index_, true, {std::move(name), std::string(type_name<T>()), use}));
}

template <class T>
Input<T> Actor::input(std::string name, PortUse use) const {
  return Input<T>(
      graph_->add_port(index_, false, {std::move(name), std::string(type_name<T>()), use}));
}

/// True if a value that leaves through From may enter through To.
template <class From, class To>
concept Connectable = requires(Graph& graph, const From& from, const To& to) {
  graph.connect(from, to);
};

}  // namespace troupe::graph
