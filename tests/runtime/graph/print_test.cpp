#include "runtime/graph/print.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace app {
struct Batch {};
struct Gradient {};
}  // namespace app

namespace troupe::graph {
namespace {

struct Printed : testing::Test {
  Printed() {
    ActorSpec spec;
    spec.name = "loader";
    spec.type = "troupe.loader";
    spec.replicas = per_rank();
    auto loader = g.add(spec);
    spec.name = "trainer";
    spec.type = "troupe.trainer";
    spec.needs = {.slots = 1, .gpus = 2, .labels = {{"host", "alpha"}}};
    auto trainer = g.add(spec);
    spec.name = "reducer";
    spec.type = "troupe.reducer";
    spec.replicas = per_node();
    spec.needs = {};
    auto reducer = g.add(spec);
    g.connect(loader.output<app::Batch>("batches"), trainer.input<app::Batch>("batches"),
              {.capacity = 4});
    g.connect(trainer.output<app::Gradient>("gradients"), reducer.input<app::Gradient>("parts"),
              {.pattern = Pattern::local});
    g.connect(reducer.output<app::Gradient>("sums"), trainer.input<app::Gradient>("sums"),
              {.pattern = Pattern::local, .capacity = 1, .feedback = true});
  }
  Graph g{"mnist"};
};

constexpr const char* kText =
    R"(graph mnist

  actor    type            replicas  needs
  loader   troupe.loader   per rank
  trainer  troupe.trainer  per rank  1 slot, 2 gpus, host=alpha
  reducer  troupe.reducer  per node

  from                   to               type           pattern     capacity
  loader.batches     ->  trainer.batches  app::Batch     one to one  4
  trainer.gradients  ->  reducer.parts    app::Gradient  local       16
  reducer.sums       ->  trainer.sums     app::Gradient  local       1         feedback
)";

TEST_F(Printed, text_is_aligned_tables) {
  EXPECT_EQ(to_text(g), kText);
}

TEST_F(Printed, text_of_a_placement_says_who_is_where) {
  const std::vector<NodeOffer> nodes{{NodeId{0, 1}, "head", "alpha", 0, 0, {}},
                                     {NodeId{0, 2}, "node-1", "alpha", 1, 2, {}},
                                     {NodeId{0, 3}, "", "alpha", 1, 2, {}}};
  const auto placement = place(g, nodes, 5, 3);
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(to_text(g, *placement), std::string(kText) +
                                        R"(
placement, generation 3

  node      host   ranks  loader  trainer  reducer
  head      alpha  -      -       -        -
  node-1    alpha  0-1    0-1     0-1      0
  00000000  alpha  2-4    2-4     2-4      1
)");
}

TEST_F(Printed, dot_is_a_record_for_each_actor) {
  EXPECT_EQ(to_dot(g), R"(digraph "mnist" {
  rankdir=LR;
  node [shape=record];
  a0 [label="{loader\nper\ rank|{<o0> batches}}"];
  a1 [label="{{<i0> batches|<i1> sums}|trainer\nper\ rank|{<o0> gradients}}"];
  a2 [label="{{<i0> parts}|reducer\nper\ node|{<o0> sums}}"];
  a0:o0 -> a1:i0 [label="app::Batch\none to one, 4"];
  a1:o0 -> a2:i0 [label="app::Gradient\nlocal, 16"];
  a2:o0 -> a1:i1 [label="app::Gradient\nlocal, 1", style=dashed];
}
)");
}

TEST(Print, dot_escapes_what_would_end_a_name) {
  Graph g("a\"b");
  ActorSpec spec;
  spec.name = "x|{y}\n<z>\\";
  g.add(spec);
  EXPECT_EQ(to_dot(g),
            "digraph \"a\\\"b\" {\n  rankdir=LR;\n  node [shape=record];\n"
            "  a0 [label=\"{x\\|\\{y\\}\\n\\<z\\>\\\\\\nfixed(1)}\"];\n}\n");
}

TEST(Print, text_of_an_empty_graph_is_its_name) {
  EXPECT_EQ(to_text(Graph("nothing")), "graph nothing\n\n  actor  type  replicas  needs\n");
}

}  // namespace
}  // namespace troupe::graph
