#include "runtime/graph/deploy.hpp"

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/ports.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::graph {
namespace {

using testing::ElementsAre;

struct State {
  explicit State(caf::event_based_actor* self) : ports(self) {}
  Ports ports;
  int next = 0;
  std::vector<int> values;
};
using Self = caf::stateful_actor<State>;

/// Sends 0..count-1 to its "numbers", then finishes.
caf::behavior source(Self* self, int count) {
  auto& out = self->state.ports.output<int>("numbers");
  const auto pump = [self, &out, count] {
    while (self->state.next < count && out.ready()) (void)out.send(self->state.next++);
    if (self->state.next == count) out.finish();
  };
  out.on_ready(pump);
  self->state.ports.on_start(pump);
  return self->state.ports.handlers();
}

/// Passes on the square of each number.
caf::behavior worker(Self* self) {
  auto& out = self->state.ports.output<int>("squares");
  auto& in = self->state.ports.input<int>("numbers",
                                          [&out](int n, const Origin&) { (void)out.send(n * n); });
  in.on_finished([&out] { out.finish(); });
  return self->state.ports.handlers();
}

/// Tells `observer` the sum of all it got.
caf::behavior sink(Self* self, caf::actor observer) {
  auto& state = self->state;
  auto& in = state.ports.input<int>("squares",
                                    [&state](int n, const Origin&) { state.values.push_back(n); });
  in.on_finished([self, observer, &state] {
    self->send(observer, std::accumulate(state.values.begin(), state.values.end(), 0),
               static_cast<int>(state.values.size()));
  });
  return state.ports.handlers();
}

caf::behavior refuses_to_start() {
  return {[](const Start&) -> caf::result<void> {
    return remoting::to_caf({Code::io_error, "the disk is full"});
  }};
}
caf::behavior never_answers(caf::event_based_actor* self) {
  return {[=](const Start&) { return self->make_response_promise(); }};
}
caf::behavior knows_nothing() {
  return {[](int) {}};
}

/// Every node is this process.
class LocalSpawner final : public Spawner {
public:
  explicit LocalSpawner(caf::actor_system& system) : system_(system) {}

  void spawn(NodeId node, const std::string& type, caf::message arguments, Done done) override {
    if (const auto broken = broken_nodes.find(node); broken != broken_nodes.end())
      return done(broken->second);
    auto actor = system_.spawn<caf::actor>(type, std::move(arguments));
    if (!actor) return done(Error{Code::not_found, "there is no actor type '" + type + "'"});
    spawned.push_back(*actor);
    where.emplace_back(type, node.low);
    done(*actor);
  }

  std::map<NodeId, Error> broken_nodes;
  std::vector<caf::actor> spawned;
  std::vector<std::pair<std::string, std::uint64_t>> where;

private:
  caf::actor_system& system_;
};

struct Deploy : testing::Test {
  static caf::actor_system_config make_config() {
    caf::actor_system_config c;
    c.set("scheduler.max-threads", 2u);
    c.add_actor_type("source", source)
        .add_actor_type("worker", worker)
        .add_actor_type("sink", sink)
        .add_actor_type("refuses", refuses_to_start)
        .add_actor_type("silent", never_answers)
        .add_actor_type("deaf", knows_nothing);
    add_message_types(c);
    return c;
  }

  ActorSpec spec(std::string name, Replicas replicas) {
    ActorSpec result;
    result.name = std::move(name);
    result.replicas = replicas;
    return result;
  }

  /// source -> workers -> sink.
  void build_pipeline(int count) {
    auto s = spec("source", fixed(1));
    s.arguments = [count](const Replica&) { return caf::make_message(count); };
    auto from = g.add(s);
    auto work = g.add(spec("worker", per_rank()));
    auto e = spec("sink", fixed(1));
    e.arguments = [this](const Replica&) {
      return caf::make_message(caf::actor_cast<caf::actor>(self.ptr()));
    };
    auto to = g.add(e);
    g.connect(from.output<int>("numbers"), work.input<int>("numbers"),
              {.pattern = Pattern::all_to_all, .capacity = 3});
    g.connect(work.output<int>("squares"), to.input<int>("squares"),
              {.pattern = Pattern::gather, .capacity = 100});
  }

  Result<Deployment> run(std::uint32_t ranks = 3) {
    auto placement = place(g, nodes, ranks);
    EXPECT_TRUE(placement.ok()) << placement.error().message;
    return deploy(g, *placement, spawner, system, options);
  }

  /// True when every actor that was ever spawned has ended.
  void expect_all_ended() {
    for (const auto& actor : spawner.spawned) self->monitor(actor);
    for (std::size_t i = 0; i < spawner.spawned.size(); ++i)
      self->receive([](const caf::down_msg&) {});
  }

  Graph g{"g"};
  std::vector<NodeOffer> nodes{{NodeId{0, 1}, "node-1", "alpha", 1, 0, {}},
                               {NodeId{0, 2}, "node-2", "alpha", 1, 0, {}}};
  DeployOptions options;
  caf::actor_system_config config = make_config();
  caf::actor_system system{config};
  LocalSpawner spawner{system};
  caf::scoped_actor self{system};
};

TEST_F(Deploy, values_flow_from_source_to_sink) {
  build_pipeline(100);
  auto deployment = run();
  ASSERT_TRUE(deployment.ok()) << deployment.error().message;
  self->receive([](int sum, int count) {
    EXPECT_EQ(sum, 328350);
    EXPECT_EQ(count, 100);
  });
  EXPECT_EQ(deployment->size(), 5u);
  EXPECT_EQ(deployment->replicas("worker").size(), 3u);
  EXPECT_TRUE(deployment->replicas("nobody").empty());
  EXPECT_TRUE(deployment->undeploy().ok());
  expect_all_ended();
}

TEST_F(Deploy, each_replica_is_spawned_where_it_is_placed) {
  build_pipeline(1);
  auto deployment = run(2);
  ASSERT_TRUE(deployment.ok());
  using Place = std::pair<std::string, std::uint64_t>;
  EXPECT_THAT(spawner.where, ElementsAre(Place("source", 1), Place("worker", 1), Place("worker", 2),
                                         Place("sink", 1)));
}

TEST_F(Deploy, a_deployment_ends_its_actors_when_it_goes) {
  build_pipeline(1000);
  {
    auto deployment = run();
    ASSERT_TRUE(deployment.ok());
    Deployment moved = std::move(*deployment);
    EXPECT_EQ(moved.size(), 5u);
  }
  expect_all_ended();
}

TEST_F(Deploy, a_node_that_cannot_spawn_is_named_and_the_others_are_stopped) {
  build_pipeline(1);
  spawner.broken_nodes[NodeId{0, 2}] = {Code::unavailable, "the node is gone"};
  auto deployment = run(2);
  ASSERT_FALSE(deployment.ok());
  EXPECT_EQ(deployment.code(), Code::unavailable);
  EXPECT_EQ(deployment.error().message,
            "graph 'g': actor 'worker' replica 1 on node 'node-2' could "
            "not be started: the node is gone");
  EXPECT_EQ(spawner.spawned.size(), 3u);
  expect_all_ended();
}

TEST_F(Deploy, an_unknown_type_is_named) {
  g.add(spec("stranger", fixed(1)));
  auto deployment = run();
  ASSERT_FALSE(deployment.ok());
  EXPECT_EQ(deployment.error().message,
            "graph 'g': actor 'stranger' replica 0 on node 'node-1' "
            "could not be started: there is no actor type 'stranger'");
}

TEST_F(Deploy, an_actor_that_refuses_to_start_fails_the_deployment) {
  g.add(spec("refuses", fixed(2)));
  auto deployment = run();
  ASSERT_FALSE(deployment.ok());
  EXPECT_EQ(deployment.code(), Code::io_error);
  EXPECT_EQ(deployment.error().message,
            "graph 'g': actor 'refuses' replica 0 on node 'node-1' could "
            "not start: the disk is full");
  expect_all_ended();
}

TEST_F(Deploy, an_actor_that_does_not_answer_is_not_waited_for_for_ever) {
  options.answer_timeout = std::chrono::milliseconds(20);
  g.add(spec("silent", fixed(1)));
  auto deployment = run();
  ASSERT_FALSE(deployment.ok());
  EXPECT_EQ(deployment.code(), Code::deadline_exceeded);
  expect_all_ended();
}

TEST_F(Deploy, an_actor_without_the_port_of_the_graph_fails_the_deployment) {
  auto a = g.add(spec("worker", fixed(1)));
  a.input<int>("numbers", PortUse::optional);
  auto b = g.add(spec("sink", fixed(1)));
  g.connect(a.output<int>("cubes"), b.input<int>("squares"));
  // Its arguments are checked by CAF: a sink without an observer cannot be spawned.
  auto without = run();
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().message, testing::HasSubstr("actor 'sink' replica 0"));
  expect_all_ended();
}

TEST_F(Deploy, an_actor_that_knows_nothing_of_graphs_fails_the_deployment) {
  g.add(spec("deaf", fixed(1)));
  auto deployment = run();
  ASSERT_FALSE(deployment.ok());
  EXPECT_THAT(deployment.error().message,
              testing::HasSubstr("actor 'deaf' replica 0 on node 'node-1' could not start"));
  expect_all_ended();
}

TEST_F(Deploy, a_placement_of_another_graph_is_refused) {
  build_pipeline(1);
  Graph other("other");
  other.add(spec("deaf", fixed(1)));
  auto placement = place(other, nodes, 1);
  ASSERT_TRUE(placement.ok());
  auto deployment = deploy(g, *placement, spawner, system);
  ASSERT_FALSE(deployment.ok());
  EXPECT_EQ(deployment.error().message,
            "the placement is not one of graph 'g'; place() this graph");
}

}  // namespace
}  // namespace troupe::graph
