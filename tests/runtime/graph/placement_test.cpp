#include "runtime/graph/placement.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Numbers = std::vector<std::uint32_t>;

Numbers share(std::uint32_t count, const Numbers& weights) {
  return share_out(count, weights);
}

NodeOffer node(std::uint64_t number, std::string host, std::uint32_t slots = 1,
               std::uint32_t gpus = 0) {
  return {NodeId{0, number}, "node-" + std::to_string(number), std::move(host), slots, gpus, {}};
}

std::vector<NodeOffer> nodes_on_one_host(std::uint64_t count) {
  std::vector<NodeOffer> nodes;
  for (std::uint64_t i = 1; i <= count; ++i) nodes.push_back(node(i, "alpha"));
  return nodes;
}

ActorSpec actor(std::string name, Replicas replicas, Resources needs = {}) {
  ActorSpec spec;
  spec.name = std::move(name);
  spec.replicas = replicas;
  spec.needs = std::move(needs);
  return spec;
}

/// The only actor of a graph, placed.
Result<Placement> place_one(ActorSpec spec, const std::vector<NodeOffer>& nodes,
                            std::uint32_t ranks) {
  Graph g("g");
  g.add(std::move(spec));
  return place(g, nodes, ranks);
}

TEST(ShareOut, gives_equal_places_equal_aligned_runs) {
  EXPECT_THAT(share(8, {1}), ElementsAre(8));
  EXPECT_THAT(share(8, {1, 1}), ElementsAre(4, 4));
  EXPECT_THAT(share(8, {1, 1, 1, 1}), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(share(8, Numbers(8, 1)), Numbers(8, 1));
}

TEST(ShareOut, cuts_where_the_fewest_aligned_blocks_result) {
  // 3 + 2 + 3 is five blocks as 3 + 3 + 2 would be, too: [0,2)[2,3) [3,4)[4,5)[4,6) ...
  EXPECT_THAT(share(8, {1, 1, 1}), ElementsAre(3, 3, 2));
  // [0,2)[2,4)[4,5)[5,6) rather than [0,2)[2,3)[3,4)... with single ranks in between.
  EXPECT_THAT(share(6, {1, 1, 1, 1}), ElementsAre(2, 2, 1, 1));
}

TEST(ShareOut, follows_the_weights) {
  EXPECT_THAT(share(8, {3, 1}), ElementsAre(6, 2));
  EXPECT_THAT(share(8, {0, 2, 0, 2}), ElementsAre(0, 4, 0, 4));
  EXPECT_THAT(share(1, {1, 5}), testing::AnyOf(ElementsAre(1, 0), ElementsAre(0, 1)));
}

TEST(ShareOut, gives_some_places_nothing_if_there_are_more_of_them) {
  EXPECT_THAT(share(2, {1, 1, 1}), ElementsAre(1, 1, 0));
  EXPECT_THAT(share(0, {1, 1}), ElementsAre(0, 0));
}

std::uint32_t blocks(std::uint64_t begin, std::uint64_t end) {
  std::uint32_t count = 0;
  while (begin < end) {
    std::uint64_t size = 1;
    while (begin % (size * 2) == 0 && begin + size * 2 <= end) size *= 2;
    begin += size;
    ++count;
  }
  return count;
}

std::uint32_t blocks_of(const Numbers& sizes) {
  std::uint32_t count = 0;
  std::uint64_t begin = 0;
  for (auto size : sizes) {
    count += blocks(begin, begin + size);
    begin += size;
  }
  return count;
}

/// The fewest blocks of all ways to give `rest` places one more than `base`.
std::uint32_t fewest_blocks(Numbers base, std::uint32_t rest) {
  std::vector<bool> extra(base.size());
  std::fill(extra.end() - rest, extra.end(), true);
  std::uint32_t fewest = UINT32_MAX;
  do {
    Numbers sizes = base;
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] += extra[i] ? 1 : 0;
    fewest = std::min(fewest, blocks_of(sizes));
  } while (std::next_permutation(extra.begin(), extra.end()));
  return fewest;
}

TEST(ShareOut, is_balanced_and_the_best_aligned_of_all_balanced_ways) {
  for (std::uint32_t places = 1; places <= 9; ++places)
    for (std::uint32_t count = 0; count <= 40; ++count) {
      SCOPED_TRACE(testing::Message() << count << " over " << places);
      const auto sizes = share(count, Numbers(places, 1));
      ASSERT_EQ(std::accumulate(sizes.begin(), sizes.end(), 0u), count);
      const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
      ASSERT_LE(*most - *least, 1u);
      ASSERT_EQ(blocks_of(sizes), fewest_blocks(Numbers(places, count / places), count % places));
    }
}

TEST(ShareOut, stays_within_one_of_every_weighted_share) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Numbers weights(1 + random() % 12);
    for (auto& w : weights) w = random() % 5;
    weights[random() % weights.size()] = 3;
    const std::uint32_t count = random() % 200;
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto sizes = share(count, weights);
    ASSERT_EQ(std::accumulate(sizes.begin(), sizes.end(), 0u), count);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      ASSERT_LT(std::abs(sizes[i] - count * weights[i] / total), 1.0);
  }
}

TEST(Placement, one_replica_per_rank_is_where_the_rank_is) {
  auto placed = place_one(actor("trainer", per_rank()), nodes_on_one_host(2), 4);
  ASSERT_TRUE(placed.ok()) << placed.error().message;
  EXPECT_THAT(placed->rank_nodes, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(placed->replicas[0], placed->rank_nodes);
  EXPECT_EQ(placed->node_of_rank(3), (NodeId{0, 2}));
}

TEST(Placement, every_rank_has_a_place_however_few_the_slots) {
  auto placed = place_one(actor("trainer", per_rank(), {.slots = 1}), nodes_on_one_host(1), 8);
  ASSERT_TRUE(placed.ok());
  EXPECT_EQ(placed->rank_nodes, Numbers(8, 0));
}

TEST(Placement, one_replica_per_node_is_on_nodes_with_slots) {
  auto placed = place_one(actor("reducer", per_node()),
                          {node(1, "alpha", 0), node(2, "alpha"), node(3, "beta")}, 0);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->replicas[0], ElementsAre(1, 2));
}

TEST(Placement, one_replica_per_host_is_on_the_first_node_of_each) {
  auto placed = place_one(
      actor("bridge", per_host()),
      {node(1, "alpha"), node(2, "beta"), node(3, "alpha"), node(4, "beta"), node(5, "gamma")}, 0);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->replicas[0], ElementsAre(0, 1, 4));
}

TEST(Placement, fixed_replicas_are_spread_by_slots) {
  auto placed = place_one(actor("worker", fixed(6)), {node(1, "alpha", 2), node(2, "alpha", 1)}, 0);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->replicas[0], ElementsAre(0, 0, 0, 0, 1, 1));
}

TEST(Placement, a_node_without_slots_is_used_where_no_other_will_do) {
  const std::vector<NodeOffer> nodes{node(1, "alpha", 0), node(2, "beta", 4)};
  auto placed = place_one(actor("writer", fixed(1), {.labels = {{"host", "alpha"}}}), nodes, 0);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->replicas[0], ElementsAre(0));
}

TEST(Placement, labels_choose_nodes) {
  auto nodes = nodes_on_one_host(3);
  nodes[2].labels["disk"] = "fast";
  auto placed = place_one(actor("loader", fixed(2), {.labels = {{"disk", "fast"}}}), nodes, 0);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->replicas[0], ElementsAre(2, 2));
}

TEST(Placement, ranks_go_where_their_gpus_are) {
  const std::vector<NodeOffer> nodes{node(1, "alpha", 4, 0), node(2, "alpha", 1, 1),
                                     node(3, "beta", 1, 2)};
  auto placed = place_one(actor("trainer", per_rank(), {.gpus = 1}), nodes, 4);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->rank_nodes, ElementsAre(1, 1, 2, 2));
}

std::string placement_error(ActorSpec spec, const std::vector<NodeOffer>& nodes,
                            std::uint32_t ranks, Code code = Code::resource_exhausted) {
  auto placed = place_one(std::move(spec), nodes, ranks);
  if (placed.ok()) return "placed";
  EXPECT_EQ(placed.code(), code);
  return placed.error().message;
}

TEST(Placement, resources_that_nobody_has_are_named) {
  const auto nodes = nodes_on_one_host(2);
  EXPECT_EQ(placement_error(actor("trainer", per_rank(), {.gpus = 1}), nodes, 2),
            "graph 'g': actor 'trainer' needs 1 gpu; no node offers one");
  EXPECT_EQ(placement_error(actor("trainer", per_node(), {.slots = 4}), nodes, 2),
            "graph 'g': actor 'trainer' needs 4 slots; no node offers more than 1");
  EXPECT_EQ(placement_error(actor("loader", fixed(1), {.labels = {{"host", "beta"}}}), nodes, 2),
            "graph 'g': actor 'loader' needs the label host=beta; no node has it");
  const std::vector<NodeOffer> split{node(1, "alpha", 4, 0), node(2, "beta", 1, 2)};
  EXPECT_EQ(placement_error(actor("loader", fixed(1), {.slots = 4, .gpus = 2}), split, 2),
            "graph 'g': actor 'loader' needs more than any single node offers; lower its needs or "
            "add a node");
}

TEST(Placement, an_actor_per_rank_needs_ranks) {
  EXPECT_EQ(
      placement_error(actor("trainer", per_rank()), nodes_on_one_host(1), 0,
                      Code::invalid_argument),
      "graph 'g': actor 'trainer' has one replica per rank, and there are 0 ranks; ask for at "
      "least 1");
}

TEST(Placement, needs_nodes_each_once) {
  EXPECT_EQ(placement_error(actor("a", fixed(1)), {}, 1),
            "graph 'g' has no node to run on; start at least one");
  EXPECT_EQ(placement_error(actor("a", fixed(1)), {node(1, "alpha"), node(1, "beta")}, 1,
                            Code::invalid_argument),
            "node 'node-1' (00000000) is offered twice; offer each once");
}

TEST(Placement, an_invalid_graph_is_not_placed) {
  EXPECT_EQ(placement_error(actor("a", fixed(0)), nodes_on_one_host(1), 1, Code::invalid_argument),
            "graph 'g': actor 'a' has 0 replicas; ask for at least 1");
}

/// Two actors and the edge between them, placed; who is connected to whom.
Result<Pairs> pairs(ActorSpec from, ActorSpec to, Pattern pattern,
                    const std::vector<NodeOffer>& nodes, std::uint32_t ranks) {
  Graph g("g");
  auto a = g.add(std::move(from));
  auto b = g.add(std::move(to));
  g.connect(a.output<int>("out"), b.input<int>("in"), {.pattern = pattern});
  auto placed = place(g, nodes, ranks);
  if (!placed.ok()) return std::move(placed).error();
  return placed->pairs[0];
}

TEST(Placement, one_to_one_connects_replicas_of_the_same_number) {
  auto found = pairs(actor("a", per_rank()), actor("b", per_rank()), Pattern::one_to_one,
                     nodes_on_one_host(2), 3);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found, ElementsAre(Numbers{0}, Numbers{1}, Numbers{2}));
}

TEST(Placement, local_connects_a_rank_with_its_nodes_replica) {
  const auto nodes = nodes_on_one_host(2);
  auto up = pairs(actor("a", per_rank()), actor("b", per_node()), Pattern::local, nodes, 4);
  ASSERT_TRUE(up.ok());
  EXPECT_THAT(*up, ElementsAre(Numbers{0}, Numbers{0}, Numbers{1}, Numbers{1}));
  auto down = pairs(actor("a", per_node()), actor("b", per_rank()), Pattern::local, nodes, 4);
  ASSERT_TRUE(down.ok());
  EXPECT_THAT(*down, ElementsAre(Numbers{0, 1}, Numbers{2, 3}));
}

TEST(Placement, local_means_the_host_if_one_side_is_per_host) {
  const std::vector<NodeOffer> nodes{node(1, "alpha"), node(2, "alpha"), node(3, "beta")};
  auto found = pairs(actor("a", per_node()), actor("b", per_host()), Pattern::local, nodes, 0);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found, ElementsAre(Numbers{0}, Numbers{0}, Numbers{1}));
}

TEST(Placement, a_nodes_replica_may_have_no_rank_beside_it) {
  auto found = pairs(actor("a", per_node()), actor("b", per_rank()), Pattern::local,
                     nodes_on_one_host(3), 2);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found, ElementsAre(Numbers{0}, Numbers{1}, IsEmpty()));
}

TEST(Placement, all_to_all_broadcast_and_gather_connect_all) {
  const auto nodes = nodes_on_one_host(2);
  EXPECT_THAT(*pairs(actor("a", per_node()), actor("b", fixed(3)), Pattern::all_to_all, nodes, 0),
              ElementsAre(Numbers{0, 1, 2}, Numbers{0, 1, 2}));
  EXPECT_THAT(*pairs(actor("a", fixed(1)), actor("b", per_node()), Pattern::broadcast, nodes, 0),
              ElementsAre(Numbers{0, 1}));
  EXPECT_THAT(*pairs(actor("a", per_node()), actor("b", fixed(1)), Pattern::gather, nodes, 0),
              ElementsAre(Numbers{0}, Numbers{0}));
}

TEST(Placement, an_edge_that_does_not_fit_thes_nodes_is_explained) {
  const std::vector<NodeOffer> nodes{node(1, "alpha", 1, 1), node(2, "alpha")};
  auto split = pairs(actor("a", per_node()), actor("b", per_node(), {.gpus = 1}),
                     Pattern::one_to_one, nodes, 0);
  ASSERT_FALSE(split.ok());
  EXPECT_EQ(split.error().message,
            "graph 'g': edge 'a.out' -> 'b.in' is one to one, but has 2 producers and 1 consumers "
            "on these nodes; give both the same needs");
  auto up =
      pairs(actor("a", per_rank()), actor("b", per_node(), {.gpus = 1}), Pattern::local, nodes, 2);
  ASSERT_FALSE(up.ok());
  EXPECT_EQ(up.error().message,
            "graph 'g': edge 'a.out' -> 'b.in' is local, and replica 1 of 'a' on node 'node-2' has "
            "no replica of 'b' there; give both the same needs");
  auto down =
      pairs(actor("a", per_node(), {.gpus = 1}), actor("b", per_rank()), Pattern::local, nodes, 2);
  ASSERT_FALSE(down.ok());
  EXPECT_EQ(
      down.error().message,
      "graph 'g': edge 'a.out' -> 'b.in' is local, and no replica of 'a' is there for replica "
      "1 of 'b' on node 'node-2'; give both the same needs");
}

TEST(Placement, tells_a_replica_where_it_is) {
  Graph g("g");
  g.add(actor("trainer", per_rank()));
  auto placed = place(g, std::vector{node(1, "alpha"), node(2, "beta")}, 2, 7);
  ASSERT_TRUE(placed.ok());
  const auto replica = replica_of(g, *placed, 0, 1);
  EXPECT_EQ(replica.index, 1u);
  EXPECT_EQ(replica.count, 2u);
  EXPECT_EQ(replica.rank, 1u);
  EXPECT_EQ(replica.ranks, 2u);
  EXPECT_EQ(replica.generation, 7u);
  EXPECT_EQ(replica.node, (NodeId{0, 2}));
  EXPECT_EQ(replica.node_name, "node-2");
  EXPECT_EQ(replica.host, "beta");
}

}  // namespace
}  // namespace troupe::graph
