#include "kernels/internal/wide_math.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/internal/loss.hpp"
#include "kernels/internal/wide_rows.hpp"
#include "kernels/philox.hpp"

namespace troupe::kernels {
namespace {

/// The greatest error of `function` in [low, high] by 100,000 points, relative to the true value or
/// to `least`, whichever is greater.
template <class Function, class Truth>
double worst(float low, float high, double least, Function function, Truth truth) {
  double error = 0.0;
  for (int i = 0; i <= 100000; ++i) {
    const float x = low + (high - low) * (static_cast<float>(i) / 100000.0f);
    const double expected = truth(static_cast<double>(x));
    const double scale = std::max(std::abs(expected), least);
    error = std::max(error, std::abs(static_cast<double>(function(x)) - expected) / scale);
  }
  return error;
}

TEST(WideMath, is_within_a_few_units_of_the_last_place) {
  constexpr double kUnit = 0x1p-24;
  EXPECT_LT(worst(-87.0f, 88.0f, 0.0, wide::exp, [](double x) { return std::exp(x); }), 4 * kUnit);
  EXPECT_LT(
      worst(-30.0f, 30.0f, 0.0, wide::sigmoid, [](double x) { return 1.0 / (1.0 + std::exp(-x)); }),
      8 * kUnit);
  EXPECT_LT(worst(-10.0f, 10.0f, 1e-30, wide::tanh, [](double x) { return std::tanh(x); }),
            8 * kUnit);
  EXPECT_LT(worst(-6.0f, 6.0f, 1.0, wide::erf, [](double x) { return std::erf(x); }), 8 * kUnit);
}

TEST(WideMath, takes_what_is_no_ordinary_number) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(wide::exp(-kInfinity), 0.0f);
  EXPECT_EQ(wide::exp(0.0f), 1.0f);
  EXPECT_NEAR(wide::tanh(kInfinity), 1.0f, 1e-6f);
  EXPECT_NEAR(wide::tanh(-kInfinity), -1.0f, 1e-6f);
  EXPECT_TRUE(std::isnan(wide::exp(kNan)));
  EXPECT_TRUE(std::isnan(wide::tanh(kNan)));
  EXPECT_TRUE(std::isnan(wide::erf(kNan)));
}

TEST(WideRows, add_up_what_does_not_fill_a_vector_too) {
  for (std::size_t n = 1; n < 70; ++n) {
    std::vector<float> x(n), y(n);
    Philox random(n);
    for (float& value : x) value = random.uniform(-1.0f, 1.0f);
    for (float& value : y) value = random.uniform(-1.0f, 1.0f);
    double sum = 0.0, dot = 0.0, squares = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto a = static_cast<double>(x[i]);
      sum += a;
      dot += a * static_cast<double>(y[i]);
      squares += (a - 0.25) * (a - 0.25);
    }
    EXPECT_NEAR(static_cast<double>(wide::sum(x.data(), n)), sum, 1e-5);
    EXPECT_NEAR(static_cast<double>(wide::dot(x.data(), y.data(), n)), dot, 1e-5);
    EXPECT_NEAR(static_cast<double>(wide::squares(x.data(), 0.25f, n)), squares, 1e-5);
    EXPECT_EQ(wide::greatest(x.data(), n), *std::ranges::max_element(x));
  }
}

/// Cross entropy in double, with its gradient.
double cross_entropy(std::span<const float> x, std::size_t label, double smoothing,
                     std::vector<double>& gradient) {
  const auto greatest = static_cast<double>(*std::ranges::max_element(x));
  double sum = 0.0, loss = 0.0;
  for (const float v : x) sum += std::exp(static_cast<double>(v) - greatest);
  const double n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double log_p = static_cast<double>(x[i]) - greatest - std::log(sum);
    const double target = (i == label ? 1.0 - smoothing : 0.0) + smoothing / n;
    loss -= target * log_p;
    gradient.push_back(std::exp(log_p) - target);
  }
  return loss;
}

class CrossEntropy : public testing::TestWithParam<std::size_t> {
protected:
  const std::size_t classes = GetParam();
  std::vector<float> logits = std::vector<float>(5 * classes);
  std::vector<float> gradient = std::vector<float>(5 * classes);
  std::vector<std::int32_t> labels = {0, static_cast<std::int32_t>(classes) - 1, 3, 1, 2};

  void SetUp() override {
    Philox random(1);
    for (float& logit : logits) logit = 4.0f * random.normal();
  }
};

TEST_P(CrossEntropy, is_the_formula_with_smoothing_and_an_ignored_label) {
  for (const float smoothing : {0.0f, 0.1f}) {
    const LossOptions options{smoothing, 3, 2};
    const LossStats stats = softmax_cross_entropy(logits, static_cast<std::int64_t>(classes),
                                                  labels, gradient, options);
    EXPECT_EQ(stats.count, 4);
    double loss = 0.0;
    for (std::size_t row = 0; row < 5; ++row) {
      std::vector<double> expected;
      const auto x = std::span<const float>(logits).subspan(row * classes, classes);
      const double own = cross_entropy(x, static_cast<std::size_t>(labels[row]),
                                       static_cast<double>(smoothing), expected);
      const bool ignored = labels[row] == 3;
      loss += ignored ? 0.0 : own;
      for (std::size_t i = 0; i < classes; ++i)
        ASSERT_NEAR(static_cast<double>(gradient[row * classes + i]), ignored ? 0.0 : expected[i],
                    2e-7)
            << row << " " << i;
    }
    EXPECT_NEAR(stats.loss_sum, loss, 2e-6 * loss);
  }
}

TEST_P(CrossEntropy, counts_the_first_of_equal_logits_and_says_where_one_is_no_number) {
  logits[2 * classes + 3] = logits[2 * classes + 5] = 100.0f;
  logits[3 * classes + 0] = logits[3 * classes + 1] = 100.0f;
  const auto run = [&] {
    return softmax_cross_entropy(logits, static_cast<std::int64_t>(classes), labels, gradient);
  };
  logits[0] = 100.0f;
  EXPECT_GE(run().correct, 2);
  labels = {1, 1, 5, 1, 5};
  EXPECT_EQ(run().correct, 0);
  logits[4 * classes + 7] = std::numeric_limits<float>::quiet_NaN();
  const LossStats stats = run();
  EXPECT_TRUE(std::isnan(stats.loss_sum));
  EXPECT_TRUE(std::isnan(gradient[4 * classes + 5]));
}

TEST_P(CrossEntropy, does_not_depend_on_the_number_of_threads) {
  const auto n = static_cast<std::int64_t>(classes);
  const LossStats one = softmax_cross_entropy(logits, n, labels, gradient);
  const std::vector<float> expected = gradient;
  const LossStats two = softmax_cross_entropy(logits, n, labels, gradient, {.threads = 2});
  EXPECT_EQ(one.loss_sum, two.loss_sum);
  EXPECT_EQ(expected, gradient);
}

INSTANTIATE_TEST_SUITE_P(Of, CrossEntropy, testing::Values(10, 128, 1000, 5003));

}  // namespace
}  // namespace troupe::kernels
