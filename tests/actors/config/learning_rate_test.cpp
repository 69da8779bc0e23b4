#include "actors/config/learning_rate.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace troupe::train {
namespace {

constexpr JobLength kLength{.steps_per_epoch = 10, .epochs = 10};

OptimizerConfig scheduled(const ScheduleConfig& schedule) {
  return {.lr = 0.8, .schedule = schedule};
}

TEST(LearningRate, constant_stays) {
  for (const std::uint64_t step : {0, 50, 99})
    EXPECT_EQ(learning_rate(scheduled({}), step, kLength), 0.8);
}

TEST(LearningRate, warms_up_in_equal_steps_to_the_full_rate) {
  const auto optimizer = scheduled({.warmup_steps = 4});
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 0, kLength), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 3, kLength), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 4, kLength), 0.8);
}

TEST(LearningRate, steps_down_after_so_many_epochs) {
  const auto optimizer = scheduled({.kind = "step", .step_epochs = 3, .gamma = 0.5});
  EXPECT_EQ(learning_rate(optimizer, 29, kLength), 0.8);
  EXPECT_EQ(learning_rate(optimizer, 30, kLength), 0.4);
  EXPECT_EQ(learning_rate(optimizer, 99, kLength), 0.1);
}

TEST(LearningRate, follows_half_a_cosine_to_the_final_rate) {
  const auto optimizer = scheduled({.kind = "cosine", .warmup_steps = 20, .final_lr = 0.1});
  for (std::uint64_t step = 20; step < 100; ++step) {
    const double x = static_cast<double>(step - 20) / 80.0;
    EXPECT_NEAR(learning_rate(optimizer, step, kLength),
                0.1 + 0.7 * 0.5 * (1.0 + std::cos(M_PI * x)), 1e-15);
  }
  EXPECT_EQ(learning_rate(optimizer, 20, kLength), 0.8);
  EXPECT_NEAR(learning_rate(optimizer, 100, kLength), 0.1, 1e-15);
}

TEST(LearningRate, goes_straight_to_the_final_rate) {
  const auto optimizer = scheduled({.kind = "linear", .warmup_steps = 20, .final_lr = 0.1});
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 9, kLength), 0.4);
  EXPECT_EQ(learning_rate(optimizer, 20, kLength), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 60, kLength), 0.45);
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 100, kLength), 0.1);
}

TEST(LearningRate, takes_one_cycle_as_pytorch_does) {
  // OneCycleLR(max_lr=0.8, total_steps=..., pct_start=..., div_factor=10, final_div_factor=100)
  const auto cycle = [](double pct_start) {
    return scheduled(
        {.kind = "one_cycle", .pct_start = pct_start, .div_factor = 10, .final_div_factor = 100});
  };
  const std::pair<std::uint64_t, double> of_100[] = {{0, 0.07999999999999996},
                                                     {1, 0.08211033542443047},
                                                     {15, 0.4594900070907503},
                                                     {29, 0.8},
                                                     {30, 0.7995976293899094},
                                                     {60, 0.4717513351615353},
                                                     {99, 0.0008}};
  for (const auto& [step, rate] : of_100)
    EXPECT_NEAR(learning_rate(cycle(0.3), step, kLength), rate, 1e-14) << step;
  const double of_7[] = {0.07999999999999996,
                         0.32875388202501893,
                         0.7312461179749811,
                         0.7604271596138067,
                         0.48931936520894326,
                         0.1512534751772501,
                         0.0008};
  for (std::uint64_t step = 0; step < 7; ++step)
    EXPECT_NEAR(learning_rate(cycle(0.5), step, {.steps_per_epoch = 7}), of_7[step], 1e-14) << step;
}

TEST(LearningRate, of_a_cycle_too_short_to_grow_begins_at_the_peak) {
  for (const std::uint64_t steps : {1, 2, 3}) {
    const auto optimizer = scheduled({.kind = "one_cycle"});
    EXPECT_EQ(learning_rate(optimizer, 0, {.steps_per_epoch = steps}), 0.8) << steps;
  }
}

TEST(LearningRate, a_warm_up_longer_than_the_job_never_ends) {
  const auto optimizer = scheduled({.kind = "cosine", .warmup_steps = 1000});
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 99, kLength), 0.08);
}

}  // namespace
}  // namespace troupe::train
