// What a change of nodes costs a job on 10, 100 and 1,000 nodes: the real machine of its head, a
// network on which every message takes the same time D; and how many ranks change their node.
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/graph/placement.hpp"
#include "tests/actors/job/job_simulation.hpp"
#include "tests/support/scale.hpp"

namespace troupe::train {
namespace {

constexpr std::uint64_t kDelay = 1000;  // D, in microseconds

JobSimulation::Options options_for(std::uint32_t nodes) {
  JobSimulation::Options options;
  options.nodes = nodes;
  options.ranks = nodes;
  options.steps_per_epoch = 3;
  options.epochs = 2;
  options.events = 0;
  options.delay_us = kDelay;
  return options;
}

void print(std::size_t nodes, const char* event, const JobSimulation::Change& x) {
  const auto delays = [](std::uint64_t from, std::uint64_t to) { return (to - from) / kDelay; };
  fmt::print("{:6}  {:13} {:6} {:7} {:6} {:6} {:6} {:6}\n", nodes, event, delays(x.known, x.halted),
             delays(x.halted, x.deployed), delays(x.deployed, x.ready), delays(x.ready, x.pulled),
             delays(x.pulled, x.begun), delays(x.known, x.begun));
}

TEST(JobScale, a_change_takes_as_many_delays_on_a_thousand_nodes_as_on_ten) {
  fmt::print("{:>6}  {:13} {:>6} {:>7} {:>6} {:>6} {:>6} {:>6}\n", "nodes", "event", "halt",
             "deploy", "ready", "pull", "begin", "all");
  for (const std::uint32_t nodes : scale_sizes()) {
    for (const bool joins : {false, true}) {
      auto options = options_for(nodes);
      (joins ? options.join_at_us : options.kill_at_us) = 10 * kDelay;
      if (joins) options.ranks = nodes + 1;
      JobSimulation simulation(options);
      const auto broken = simulation.run();
      ASSERT_FALSE(broken) << *broken;
      ASSERT_EQ(simulation.end()->code, 0) << simulation.end()->message;
      ASSERT_EQ(simulation.final_state(), JobSimulation::state_after(6));
      ASSERT_EQ(simulation.timeline().size(), 2u);
      const auto& change = simulation.timeline()[1];
      print(nodes, joins ? "a node joins" : "a node dies", change);
      EXPECT_EQ(change.pulls, joins ? 1u : 0u);
      // There and back to halt; three times to deploy; there to begin; four ways to copy a state.
      EXPECT_LE((change.begun - change.known) / kDelay, joins ? 13u : 9u);
      EXPECT_LE((change.begun - change.known) / kDelay, 4 * std::log2(nodes));
    }
  }
}

std::vector<std::uint32_t> node_of_rank(std::uint32_t ranks, const std::vector<std::uint32_t>& on) {
  const std::vector<std::uint32_t> weights(on.size(), 1);
  const auto sizes = graph::share_out(ranks, weights);
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < on.size(); ++i) result.insert(result.end(), sizes[i], on[i]);
  return result;
}

std::size_t moves(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to) {
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < from.size(); ++rank) count += from[rank] != to[rank] ? 1 : 0;
  return count;
}

TEST(JobScale, ranks_that_change_their_node_keep_their_weights_and_their_shares) {
  fmt::print("{:>6} {:>6}  {:>12} {:>12} {:>12} {:>12}\n", "nodes", "ranks", "first leaves",
             "middle", "last leaves", "one joins");
  for (const std::uint32_t nodes : scale_sizes())
    for (const std::uint32_t ranks : {nodes, 4 * nodes}) {
      std::vector<std::uint32_t> all(nodes);
      for (std::uint32_t i = 0; i < nodes; ++i) all[i] = i;
      const auto before = node_of_rank(ranks, all);
      std::vector<std::size_t> counts;
      for (const std::uint32_t leaver : {0u, nodes / 2, nodes - 1}) {
        auto left = all;
        left.erase(left.begin() + leaver);
        counts.push_back(moves(before, node_of_rank(ranks, left)));
      }
      auto more = all;
      more.push_back(nodes);
      counts.push_back(moves(before, node_of_rank(ranks, more)));
      fmt::print("{:6} {:6}  {:12} {:12} {:12} {:12}\n", nodes, ranks, counts[0], counts[1],
                 counts[2], counts[3]);
      for (const auto count : counts) EXPECT_LE(count, ranks);
    }
}

}  // namespace
}  // namespace troupe::train
