#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/message.hpp>

#include "runtime/base/clock.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/graph/graph.hpp"
#include "runtime/graph/placement.hpp"

namespace troupe::graph {

/// Starts an actor of a registered type on a node. Threads: the one that deploys calls it; `done`
/// is called once, from any, before it returns or later.
class Spawner {
public:
  using Done = std::function<void(Result<caf::actor>)>;
  virtual ~Spawner() = default;
  virtual void spawn(NodeId node, const std::string& type, caf::message arguments, Done done) = 0;
};

/// A Spawner made of a function, such as a call of Runtime::spawn_on_async.
class FunctionSpawner final : public Spawner {
public:
  using Function = std::function<void(NodeId, const std::string&, caf::message, Done)>;
  explicit FunctionSpawner(Function function) : function_(std::move(function)) {}
  void spawn(NodeId node, const std::string& type, caf::message arguments, Done done) override {
    function_(node, type, std::move(arguments), std::move(done));
  }

private:
  Function function_;
};

struct DeployOptions {
  /// How long an actor may take to answer that it is connected, or started.
  Duration answer_timeout = std::chrono::seconds(5);
  /// How long actors may take to end when told to, before they are killed.
  Duration stop_timeout = std::chrono::seconds(5);
};

/// The running replicas of a graph.
///
/// Ownership: has the handles of all actors; ends them in undeploy(), which the destructor calls.
/// Threads:   one at a time; blocks, so never inside a cooperatively scheduled actor.
class Deployment {
public:
  Deployment(caf::actor_system& system, DeployOptions options)
      : system_(&system), options_(options) {}
  ~Deployment();
  Deployment(Deployment&& other) noexcept;
  Deployment& operator=(Deployment&& other) noexcept;
  Deployment(const Deployment&) = delete;
  Deployment& operator=(const Deployment&) = delete;

  /// The replicas of an actor, by index; empty if the graph has no actor of that name.
  const std::vector<caf::actor>& replicas(const std::string& actor) const;
  std::size_t size() const;

  /// Ends all actors and waits for it. Error: `deadline_exceeded` if some had to be killed, with
  /// the names; they are gone nevertheless. Idempotent.
  Status undeploy();

private:
  friend class Deployer;
  struct Group {
    std::string actor;
    std::vector<caf::actor> replicas;
  };

  caf::actor_system* system_;
  DeployOptions options_;
  std::vector<Group> groups_;
};

/// Runs a graph: spawns all replicas at once, tells each what it is connected to, and when all have
/// answered tells them to start: three round trips, however many nodes. On an error what was
/// started is ended again, and the sentence names actor, replica and node. Blocks. Errors: those of
/// the spawner, `deadline_exceeded`, and what an actor answered.
///
/// `system` is of this process: the deployment speaks to the actors from it.
Result<Deployment> deploy(const Graph& graph, const Placement& placement, Spawner& spawner,
                          caf::actor_system& system, DeployOptions options = {});

}  // namespace troupe::graph
