// Jobs whose nodes die, join and are cut off, and whose heads die, by seed. TROUPE_SIM_SEEDS sets
// how many (10,000), TROUPE_SIM_SEED runs one.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/actors/job/job_simulation.hpp"

namespace troupe::train {
namespace {

std::uint64_t seeds() {
  const char* text = std::getenv("TROUPE_SIM_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 10'000;
}

JobSimulation::Options options_for(std::uint64_t seed) {
  JobSimulation::Options options;
  options.seed = seed;
  options.nodes = 1 + seed % 6;
  options.events = seed % 9;
  options.heads = seed / 9 % 4;
  options.duplicates = seed % 2 == 0;
  return options;
}

TEST(JobSimulation, ends_in_the_same_weights_whatever_happens_to_its_nodes) {
  std::size_t changes = 0, undisturbed = 0;
  const char* const only = std::getenv("TROUPE_SIM_SEED");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const std::uint64_t last = only != nullptr ? first : seeds();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const auto options = options_for(seed);
    JobSimulation simulation(options);
    const auto broken = simulation.run();
    ASSERT_FALSE(broken) << *broken;
    ASSERT_EQ(simulation.end()->code, 0) << seed << ": " << simulation.end()->message;
    ASSERT_EQ(simulation.final_state(),
              JobSimulation::state_after(options.steps_per_epoch * options.epochs))
        << seed;
    changes += simulation.changes();
    undisturbed += simulation.undisturbed();
  }
  if (only != nullptr) return;
  EXPECT_GT(changes, seeds());
  EXPECT_GT(undisturbed, seeds() / 5);
}

TEST(JobSimulation, finds_planted_mistakes) {
  using Planted = JobSimulation::Planted;
  for (const auto planted :
       {Planted::vote_counted_twice, Planted::stale_generation, Planted::joiner_with_old_state}) {
    bool found = false;
    for (std::uint64_t seed = 1; seed <= 10'000 && !found; ++seed) {
      auto options = options_for(seed);
      options.planted = planted;
      JobSimulation simulation(options);
      found = simulation.run().has_value() || simulation.end()->code != 0;
    }
    EXPECT_TRUE(found) << static_cast<int>(planted);
  }
}

TEST(JobSimulation, ends_with_an_error_when_all_that_had_its_weights_are_gone) {
  std::size_t lost = 0;
  for (std::uint64_t seed = 1; seed <= seeds() / 10; ++seed) {
    auto options = options_for(seed);
    options.spare_one = false;
    options.events = 10;
    JobSimulation simulation(options);
    const auto broken = simulation.run();
    ASSERT_FALSE(broken) << *broken;
    ASSERT_TRUE(simulation.end());
    if (simulation.end()->code == 0) {
      ASSERT_EQ(simulation.final_state(),
                JobSimulation::state_after(options.steps_per_epoch * options.epochs));
    } else {
      ++lost;
      ASSERT_EQ(simulation.end()->code, static_cast<std::uint16_t>(Code::unavailable))
          << seed << ": " << simulation.end()->message;
    }
  }
  EXPECT_GT(lost, 0u);
}

// The store had not got it, and the node that had tested it was put out before its head died.
TEST(JobSimulation, an_epoch_that_only_a_dead_head_knew_of_is_not_told_again) {
  auto options = options_for(51760);
  options.spare_one = false;
  options.events = 10;
  JobSimulation simulation(options);
  const auto broken = simulation.run();
  EXPECT_FALSE(broken) << *broken;
}

TEST(JobSimulation, ends_soon_after_it_was_cancelled) {
  for (std::uint64_t seed = 1; seed <= seeds() / 10; ++seed) {
    auto options = options_for(seed);
    options.cancel_at = seed % 200;
    JobSimulation simulation(options);
    const auto broken = simulation.run();
    ASSERT_FALSE(broken) << *broken;
    ASSERT_TRUE(simulation.end());
    if (simulation.end()->code != 0) {
      EXPECT_EQ(simulation.end()->code, static_cast<std::uint16_t>(Code::cancelled));
    }
  }
}

TEST(JobSimulation, waits_for_its_least_number_of_nodes) {
  std::size_t stopped = 0;
  for (std::uint64_t seed = 1; seed <= seeds() / 10; ++seed) {
    auto options = options_for(seed);
    options.nodes = 3;
    options.min_nodes = 3;
    JobSimulation simulation(options);
    const auto broken = simulation.run();
    ASSERT_FALSE(broken) << *broken;
    ASSERT_TRUE(simulation.end());
    if (simulation.end()->code != 0) ++stopped;
  }
  EXPECT_GT(stopped, 0u);
}

}  // namespace
}  // namespace troupe::train
