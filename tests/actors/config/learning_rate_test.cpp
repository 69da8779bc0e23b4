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

TEST(LearningRate, a_warm_up_longer_than_the_job_never_ends) {
  const auto optimizer = scheduled({.kind = "cosine", .warmup_steps = 1000});
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, 99, kLength), 0.08);
}

}  // namespace
}  // namespace troupe::train
