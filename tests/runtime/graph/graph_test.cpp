#include "runtime/graph/graph.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace app {
struct Batch {};
struct LargeBatch : Batch {};
}  // namespace app

namespace troupe::graph {
namespace {

using app::Batch;
using testing::ElementsAre;
using testing::IsEmpty;

// A wrong connection does not compile.
static_assert(Connectable<Output<Batch>, Input<Batch>>);
static_assert(!Connectable<Output<Batch>, Input<int>>);
static_assert(!Connectable<Output<int>, Input<long>>, "no conversion on the way");
static_assert(!Connectable<Output<app::LargeBatch>, Input<Batch>>, "no slicing on the way");
static_assert(!Connectable<Input<Batch>, Output<Batch>>, "from an output to an input only");
static_assert(!Connectable<Output<Batch>, Output<Batch>>);
static_assert(!Connectable<Actor, Input<Batch>>, "ports, not actors");

ActorSpec named(std::string name, Replicas replicas = fixed(1)) {
  ActorSpec spec;
  spec.name = std::move(name);
  spec.replicas = replicas;
  return spec;
}

std::vector<std::string> sentences(const Graph& graph) {
  std::vector<std::string> found;
  for (const auto& problem : graph.problems()) {
    EXPECT_EQ(problem.code, Code::invalid_argument);
    found.push_back(problem.message);
  }
  return found;
}

/// loader -> trainer, connected by the test.
struct TwoActors : testing::Test {
  Graph g{"g"};
  Actor loader = g.add(named("loader", per_rank()));
  Actor trainer = g.add(named("trainer", per_rank()));
};

TEST_F(TwoActors, a_connected_graph_is_valid) {
  g.connect(loader.output<Batch>("batches"), trainer.input<Batch>("batches"));
  EXPECT_TRUE(g.validate().ok());
  EXPECT_THAT(sentences(g), IsEmpty());
}

TEST_F(TwoActors, the_type_of_an_actor_is_its_name_unless_it_is_given) {
  EXPECT_EQ(g.actors()[0].spec.type, "loader");
}

TEST_F(TwoActors, ports_know_what_flows_through_them) {
  loader.output<Batch>("batches");
  trainer.input<int>("steps");
  EXPECT_EQ(g.actors()[0].outputs[0].type, "app::Batch");
  EXPECT_EQ(g.actors()[1].inputs[0].type, "int");
}

TEST_F(TwoActors, an_unconnected_input_is_named_with_what_it_wants) {
  trainer.input<Batch>("batches");
  EXPECT_THAT(sentences(g),
              ElementsAre("graph 'g': input 'trainer.batches' is not connected; connect an output "
                          "of type app::Batch to it, or make it optional"));
  EXPECT_EQ(g.validate().error().message, sentences(g).front());
}

TEST_F(TwoActors, an_unconnected_output_is_named_with_what_it_gives) {
  loader.output<Batch>("batches");
  EXPECT_THAT(sentences(g),
              ElementsAre("graph 'g': output 'loader.batches' is not connected; connect it to an "
                          "input of type app::Batch, or make it optional"));
}

TEST_F(TwoActors, optional_ports_may_stay_unconnected) {
  loader.output<Batch>("batches", PortUse::optional);
  trainer.input<Batch>("batches", PortUse::optional);
  EXPECT_TRUE(g.validate().ok());
}

TEST_F(TwoActors, an_output_may_feed_several_inputs_and_an_input_several_outputs) {
  auto logger = g.add(named("logger", per_rank()));
  auto batches = loader.output<Batch>("batches");
  auto log = logger.input<Batch>("log");
  g.connect(batches, trainer.input<Batch>("batches"));
  g.connect(batches, log);
  g.connect(trainer.output<Batch>("used"), log);
  EXPECT_THAT(sentences(g), IsEmpty());
}

TEST_F(TwoActors, an_edge_needs_capacity) {
  g.connect(loader.output<Batch>("out"), trainer.input<Batch>("in"), {.capacity = 0});
  EXPECT_THAT(sentences(g), ElementsAre("graph 'g': edge 'loader.out' -> 'trainer.in' has capacity "
                                        "0; it needs at least 1"));
}

TEST_F(TwoActors, two_ports_are_connected_once) {
  auto out = loader.output<Batch>("out");
  auto in = trainer.input<Batch>("in");
  g.connect(out, in);
  g.connect(out, in);
  EXPECT_THAT(sentences(g), ElementsAre("graph 'g': edge 'loader.out' -> 'trainer.in' is there "
                                        "twice; connect two ports once"));
}

TEST_F(TwoActors, a_port_of_another_graph_is_refused) {
  Graph other("other");
  auto foreign = other.add(named("stranger")).output<Batch>("out");
  g.connect(foreign, trainer.input<Batch>("in", PortUse::optional));
  EXPECT_THAT(sentences(g),
              ElementsAre("graph 'g': a connection from 'stranger.out' to 'trainer.in' uses a port "
                          "of another graph; connect ports of actors that were added to this one"));
}

TEST(Graph, names_are_unique) {
  Graph g("g");
  g.add(named("loader"));
  auto second = g.add(named("loader"));
  second.input<int>("x", PortUse::optional);
  second.input<int>("x", PortUse::optional);
  second.output<int>("x", PortUse::optional);
  EXPECT_THAT(sentences(g),
              ElementsAre("graph 'g': two actors are named 'loader'; give each a name of its own",
                          "graph 'g': actor 'loader' has two inputs named 'x'; give each a name of "
                          "its own"));
}

TEST(Graph, nothing_is_without_a_name) {
  Graph g("");
  g.add(named("")).input<int>("", PortUse::optional);
  EXPECT_THAT(sentences(g), ElementsAre("a graph has no name; give it one",
                                        "graph '': an actor has no name; give each one of its own",
                                        "graph '': actor '' has an input without a name; give it "
                                        "one"));
}

TEST(Graph, a_graph_has_actors) {
  EXPECT_THAT(sentences(Graph("g")), ElementsAre("graph 'g': it has no actors; add at least one"));
}

TEST(Graph, an_actor_has_replicas) {
  Graph g("g");
  g.add(named("sink", fixed(0)));
  EXPECT_THAT(sentences(g),
              ElementsAre("graph 'g': actor 'sink' has 0 replicas; ask for at least 1"));
}

/// Three actors in a ring.
struct Ring : testing::Test {
  void build(bool feedback) {
    auto a = g.add(named("a"));
    auto b = g.add(named("b"));
    auto c = g.add(named("c"));
    auto start = g.add(named("start"));
    g.connect(start.output<int>("out"), a.input<int>("begin"));
    g.connect(a.output<int>("out"), b.input<int>("in"));
    g.connect(b.output<int>("out"), c.input<int>("in"));
    g.connect(c.output<int>("out"), a.input<int>("in"), {.feedback = feedback});
  }
  Graph g{"g"};
};

TEST_F(Ring, a_cycle_is_named_by_its_ports) {
  build(false);
  EXPECT_THAT(sentences(g),
              ElementsAre("graph 'g': there is a cycle: 'a.out' -> 'b.in', 'b.out' -> 'c.in', "
                          "'c.out' -> 'a.in'; mark the edge that closes it as feedback"));
}

TEST_F(Ring, a_feedback_edge_may_close_a_cycle) {
  build(true);
  EXPECT_THAT(sentences(g), IsEmpty());
}

TEST(Graph, an_actor_that_feeds_itself_is_a_cycle) {
  Graph g("g");
  auto a = g.add(named("a"));
  g.connect(a.output<int>("out"), a.input<int>("in"));
  EXPECT_THAT(sentences(g), ElementsAre("graph 'g': there is a cycle: 'a.out' -> 'a.in'; mark the "
                                        "edge that closes it as feedback"));
}

TEST(Graph, two_paths_between_two_actors_are_no_cycle) {
  Graph g("g");
  auto a = g.add(named("a"));
  auto b = g.add(named("b"));
  auto c = g.add(named("c"));
  auto out = a.output<int>("out");
  auto in = c.input<int>("in");
  g.connect(out, b.input<int>("in"));
  g.connect(b.output<int>("out"), in);
  g.connect(out, in);
  EXPECT_THAT(sentences(g), IsEmpty());
}

std::vector<std::string> pattern_problems(Replicas from, Replicas to, Pattern pattern) {
  Graph g("g");
  auto a = g.add(named("a", from));
  auto b = g.add(named("b", to));
  g.connect(a.output<int>("out"), b.input<int>("in"), {.pattern = pattern});
  return sentences(g);
}

TEST(Graph, a_pattern_fits_the_replicas) {
  EXPECT_THAT(pattern_problems(per_rank(), per_rank(), Pattern::one_to_one), IsEmpty());
  EXPECT_THAT(pattern_problems(per_rank(), per_node(), Pattern::local), IsEmpty());
  EXPECT_THAT(pattern_problems(per_host(), per_rank(), Pattern::local), IsEmpty());
  EXPECT_THAT(pattern_problems(per_node(), per_node(), Pattern::all_to_all), IsEmpty());
  EXPECT_THAT(pattern_problems(fixed(1), per_rank(), Pattern::broadcast), IsEmpty());
  EXPECT_THAT(pattern_problems(per_rank(), fixed(1), Pattern::gather), IsEmpty());
}

TEST(Graph, a_pattern_that_does_not_fit_the_replicas_is_explained) {
  const std::string edge = "graph 'g': edge 'a.out' -> 'b.in' ";
  EXPECT_THAT(pattern_problems(per_rank(), fixed(2), Pattern::one_to_one),
              ElementsAre(edge + "is one to one, but 'a' is per rank and 'b' is fixed(2); give "
                                 "both the same replicas, or the edge another pattern"));
  EXPECT_THAT(pattern_problems(per_rank(), fixed(2), Pattern::local),
              ElementsAre(edge + "is local, but 'a' is per rank and 'b' is fixed(2); one of them "
                                 "must be per node or per host"));
  EXPECT_THAT(pattern_problems(per_rank(), per_rank(), Pattern::broadcast),
              ElementsAre(edge + "is a broadcast, but 'a' is per rank; it must be fixed(1)"));
  EXPECT_THAT(pattern_problems(per_rank(), per_node(), Pattern::gather),
              ElementsAre(edge + "is a gather, but 'b' is per node; it must be fixed(1)"));
}

}  // namespace
}  // namespace troupe::graph
