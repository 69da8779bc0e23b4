#include "actors/train/replica.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/models.hpp"
#include "kernels/philox.hpp"

namespace troupe::train {
namespace {

kernels::Model small_model() {
  return kernels::make_model("mlp", {.input = {40}, .classes = 4, .hidden = {30}}).value();
}

std::unique_ptr<Replica> replica(const OptimizerConfig& optimizer) {
  JobConfig config;
  config.data.batch = 4;
  config.optimizer = optimizer;
  return Replica::make(config, small_model(), "", {.steps_per_epoch = 10}).value();
}

/// The gradient of a step, of all the flat layout: zero between the parameters.
std::vector<float> gradient(const Replica& replica, std::uint64_t step) {
  std::vector<float> values(replica.model().flat_size());
  kernels::Philox random(step);
  for (const auto& info : replica.model().parameters())
    for (std::size_t i = 0; i < info.elements; ++i) values[info.offset + i] = random.normal();
  return values;
}

void take(Replica& replica, std::uint64_t step) {
  const auto values = gradient(replica, step);
  replica.take_step(std::vector<kernels::GradientRun>{{0, values}});
}

TEST(Replica, takes_a_step_from_any_split_to_the_same_state) {
  for (const char* name : {"sgd", "adam", "adamw", "lamb", "lars"}) {
    auto whole = replica({.name = name, .clip_norm = 0.5});
    auto parts = replica({.name = name, .clip_norm = 0.5});
    const auto values = gradient(*whole, 1);
    const std::span<const float> all = values;
    take(*whole, 1);
    parts->take_step(std::vector<kernels::GradientRun>{
        {0, all.first(16)}, {16, all.subspan(16, 784)}, {800, all.subspan(800)}});
    EXPECT_EQ(whole->hash(), parts->hash()) << name;
    EXPECT_EQ(whole->steps_done(), 1u);
  }
}

TEST(Replica, clips_a_gradient_to_the_norm_that_the_job_allows) {
  // 1240 elements of deviation 1 / batch have a norm of about 9; the step is as long as allowed.
  auto clipped = replica({.lr = 1, .clip_norm = 0.5}), free = replica({.lr = 1});
  const auto before = clipped->parameters().clone().value();
  const auto distance = [&](const Replica& x) {
    double sum = 0;
    for (std::size_t i = 0; i < before.values().size(); ++i) {
      const auto d =
          static_cast<double>(x.parameters().values()[i]) - static_cast<double>(before.values()[i]);
      sum += d * d;
    }
    return std::sqrt(sum);
  };
  take(*clipped, 1);
  take(*free, 1);
  EXPECT_NEAR(distance(*clipped), 0.5, 1e-5);
  EXPECT_GT(distance(*free), 5);
}

TEST(Replica, goes_on_as_the_one_whose_state_it_takes) {
  for (const char* name : {"sgd", "adamw", "lars"}) {
    auto one = replica({.name = name}), other = replica({.name = name});
    take(*one, 1);
    one->skip();
    take(*one, 2);
    const auto copy = one->snapshot().value();
    ASSERT_TRUE(other
                    ->install(copy.steps_done, copy.skips, copy.loss_scale, copy.parameters,
                              copy.optimizer_state, {})
                    .ok());
    EXPECT_EQ(other->hash(), one->hash()) << name;
    take(*one, 3);
    take(*other, 3);
    EXPECT_EQ(other->hash(), one->hash()) << name;
  }
}

TEST(LossScale, is_halved_at_an_overflow_and_doubled_after_so_many_steps_without) {
  const OptimizerConfig config{.loss_scale = 8, .loss_scale_steps = 3};
  LossScale scale(config);
  EXPECT_EQ(scale.value(), 8.0f);
  scale.add_overflow();
  EXPECT_EQ(scale.value(), 4.0f);
  scale.add_finite(config);
  scale.add_finite(config);
  const LossScale kept = LossScale::from_text(scale.to_text()).value();
  EXPECT_EQ(kept, scale);
  scale.add_finite(config);
  EXPECT_EQ(scale.value(), 8.0f);
  for (int i = 0; i < 5; ++i) scale.add_overflow();
  EXPECT_EQ(scale.value(), 1.0f);
  EXPECT_FALSE(scale.can_shrink());
  for (const char* text : {"", "8", "3 0", "0.5 0", "8 -", "8 1 2", "nan 0", "inf 0"})
    EXPECT_EQ(LossScale::from_text(text).code(), Code::corrupt_data) << text;
}

TEST(Replica, refuses_the_state_of_another_optimizer_and_stays_as_it_was) {
  auto adam = replica({.name = "adam"}), sgd = replica({.name = "sgd", .momentum = 0.9});
  take(*adam, 1);
  const auto before = sgd->hash();
  const auto copy = adam->snapshot().value();
  const auto status = sgd->install(copy.steps_done, copy.skips, copy.loss_scale, copy.parameters,
                                   copy.optimizer_state, {});
  EXPECT_EQ(status.code(), Code::shape_mismatch);
  EXPECT_THAT(status.error().message, testing::HasSubstr("2 buffers"));
  EXPECT_EQ(sgd->hash(), before);
}

TEST(Replica, names_its_state_in_a_snapshot_as_pytorch_does) {
  const auto names = [](const OptimizerConfig& optimizer) {
    const auto snapshot = replica(optimizer)->snapshot().value();
    std::vector<std::string> state;
    for (std::size_t i = snapshot.weights; i < snapshot.tensors.size(); ++i)
      if (snapshot.tensors[i].name.ends_with("fc1.bias")) state.push_back(snapshot.tensors[i].name);
    return state;
  };
  using testing::ElementsAre;
  EXPECT_THAT(names({}), ElementsAre());
  EXPECT_THAT(names({.momentum = 0.9}), ElementsAre("optimizer.momentum.fc1.bias"));
  EXPECT_THAT(names({.name = "adamw"}),
              ElementsAre("optimizer.exp_avg.fc1.bias", "optimizer.exp_avg_sq.fc1.bias"));
}

TEST(Replica, does_not_count_a_skipped_step_as_an_update) {
  auto skipping = replica({.name = "adam"}), other = replica({.name = "adam"});
  skipping->skip();
  take(*skipping, 1);
  take(*other, 1);
  const auto a = skipping->parameters().values(), b = other->parameters().values();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

}  // namespace
}  // namespace troupe::train
