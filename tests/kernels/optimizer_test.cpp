#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/internal/loss.hpp"
#include "kernels/internal/portable_math.hpp"
#include "kernels/philox.hpp"
#include "kernels/sgd.hpp"
#include "kernels/vector_ops.hpp"

namespace troupe::kernels {
namespace {

using testing::HasSubstr;

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  Philox random(seed);
  for (float& value : values) value = random.normal();
  return values;
}

TEST(Sgd, follows_its_formula_step_by_step) {
  // Every product and sum rounded by itself, in this order.
  const SgdOptions options{.momentum = 0.9f, .weight_decay = 0.01f};
  const auto gradients = random_floats(1001, 1);
  auto weights = random_floats(1001, 2), expected = weights;
  std::vector<float> momentum(1001), buf(1001);
  for (int step = 0; step < 3; ++step) {
    sgd_step(options, 0.1f, 0.25f, weights, momentum, gradients);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      volatile float scaled = gradients[i] * 0.25f, decayed = 0.01f * expected[i];
      volatile float g = scaled + decayed, kept = 0.9f * buf[i];
      buf[i] = kept + g;
      volatile float change = 0.1f * buf[i];
      expected[i] = expected[i] - change;
    }
    EXPECT_EQ(weights, expected);
  }
}

TEST(Sgd, with_nesterov_looks_ahead) {
  std::vector<float> weight{1.0f}, momentum{0.5f};
  sgd_step({.momentum = 0.5f, .nesterov = true}, 0.125f, 1.0f, weight, momentum,
           std::vector<float>{2.0f});
  EXPECT_EQ(momentum[0], 2.25f);
  EXPECT_EQ(weight[0], 1.0f - 0.125f * (2.0f + 0.5f * 2.25f));
}

TEST(Sgd, gives_the_same_bits_for_any_split) {
  const SgdOptions options{.momentum = 0.9f, .weight_decay = 0.001f, .nesterov = true};
  const auto gradients = random_floats(1003, 3);
  auto whole = random_floats(1003, 4), parts = whole;
  auto whole_momentum = random_floats(1003, 5), parts_momentum = whole_momentum;
  sgd_step(options, 0.1f, 0.5f, whole, whole_momentum, gradients);
  const auto part = [](auto& values, std::size_t begin, std::size_t end) {
    return std::span(values).subspan(begin, end - begin);
  };
  for (auto [begin, end] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 18}, {18, 1003}})
    sgd_step(options, 0.1f, 0.5f, part(parts, begin, end), part(parts_momentum, begin, end),
             part(gradients, begin, end));
  EXPECT_EQ(whole, parts);
  EXPECT_EQ(whole_momentum, parts_momentum);
}

TEST(Sgd, refuses_options_out_of_range_by_name) {
  EXPECT_TRUE(SgdOptions{}.validate().ok());
  for (auto [options, name] :
       {std::pair{SgdOptions{.momentum = 1.0f}, "momentum is 1"},
        {SgdOptions{.momentum = std::numeric_limits<float>::quiet_NaN()}, "momentum is nan"},
        {SgdOptions{.weight_decay = -1.0f}, "weight_decay is -1"},
        {SgdOptions{.momentum = 0.0f, .nesterov = true}, "nesterov"}}) {
    const Status status = options.validate();
    ASSERT_EQ(status.code(), Code::invalid_argument) << name;
    EXPECT_THAT(status.error().message, HasSubstr(name));
  }
}

TEST(Add, adds_element_by_element_into_another_run_or_its_own) {
  const auto a = random_floats(37, 6), b = random_floats(37, 7);
  std::vector<float> sum(37);
  add(sum, a, b);
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], a[i] + b[i]);
  auto own = a;
  add_in_place(own, b);
  EXPECT_EQ(own, sum);
}

TEST(AddDeathTest, of_other_lengths_aborts_with_them) {
  std::vector<float> three(3), four(4);
  EXPECT_DEATH(add_in_place(three, four), "add of 3 and 4 floats into 3");
}

TEST(PortableMath, agrees_with_the_c_library) {
  for (double x : {0.0, -1e-9, -0.3, -0.5, -1.0, -7.7, -100.0, -700.0})
    EXPECT_NEAR(portable_exp(x), std::exp(x), 4e-16 * std::exp(x)) << x;
  EXPECT_NEAR(portable_exp(-740.0), std::exp(-740.0), 1e-322);
  EXPECT_EQ(portable_exp(-1e9), 0.0);
  EXPECT_TRUE(std::isnan(portable_exp(std::nan(""))));
  for (double x : {1e-300, 0.1, 0.7, 0.70711, 1.0, 1.4142, 2.0, 10.0, 1e300})
    EXPECT_NEAR(portable_log(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
  for (int i = 0; i < 1000; ++i)
    EXPECT_NEAR(portable_cos_turns(i / 1000.0), std::cos(i / 500.0 * std::acos(-1.0)), 1e-15) << i;
}

TEST(SoftmaxCrossEntropy, is_the_logarithm_of_the_labels_share) {
  const std::vector<float> logits{1.0f, 2.0f, 3.0f, 0.0f, 0.0f, 0.0f};
  const std::vector<std::int32_t> labels{2, 1};
  std::vector<float> gradient(6);
  const LossStats stats = softmax_cross_entropy(logits, 3, labels, gradient);
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_NEAR(stats.loss_sum, std::log(sum) - 3.0 + std::log(3.0), 1e-14);
  EXPECT_EQ(stats.correct, 1);  // of equal logits the first is meant
  EXPECT_EQ(stats.count, 2);
  EXPECT_NEAR(gradient[0], std::exp(1.0) / sum, 1e-7);
  EXPECT_NEAR(gradient[2], std::exp(3.0) / sum - 1, 1e-7);
  EXPECT_NEAR(gradient[4], 1.0 / 3 - 1, 1e-7);
}

TEST(SoftmaxCrossEntropy, has_the_gradient_of_its_central_differences) {
  auto logits = random_floats(40, 8);
  const std::vector<std::int32_t> labels{3, 0, 9, 1};
  std::vector<float> gradient(40);
  softmax_cross_entropy(logits, 10, labels, gradient);
  constexpr float kStep = 1.0f / 256;  // exact, and the function is computed in double
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float before = logits[i];
    const auto loss_at = [&](float value) {
      logits[i] = value;
      return softmax_cross_entropy(logits, 10, labels, {}).loss_sum;
    };
    const float up = before + kStep, down = before - kStep;
    const double above = loss_at(up), below = loss_at(down);
    logits[i] = before;
    EXPECT_NEAR(gradient[i],
                (above - below) / (static_cast<double>(up) - static_cast<double>(down)), 2e-6);
  }
}

TEST(SoftmaxCrossEntropy, neither_overflows_nor_hides_a_nan) {
  const std::vector<float> huge{3e38f, -3e38f};
  std::vector<float> gradient(2);
  EXPECT_EQ(softmax_cross_entropy(huge, 2, std::vector<std::int32_t>{0}, gradient).loss_sum, 0.0);
  EXPECT_EQ(gradient[1], 0.0f);
  const std::vector<float> broken{1.0f, std::numeric_limits<float>::quiet_NaN()};
  const LossStats stats = softmax_cross_entropy(broken, 2, std::vector<std::int32_t>{1}, gradient);
  EXPECT_TRUE(std::isnan(stats.loss_sum));
  EXPECT_EQ(stats.correct, 0);
}

}  // namespace
}  // namespace troupe::kernels
