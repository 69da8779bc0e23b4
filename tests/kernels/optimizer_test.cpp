#include "kernels/optimizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/internal/loss.hpp"
#include "kernels/internal/portable_math.hpp"
#include "kernels/layers/batch_norm.hpp"
#include "kernels/layers/convolution.hpp"
#include "kernels/layers/linear.hpp"
#include "kernels/model_builder.hpp"
#include "kernels/philox.hpp"
#include "kernels/vector_ops.hpp"
#include "tests/kernels/digest.hpp"

namespace troupe::kernels {
namespace {

using testing::HasSubstr;

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  Philox random(seed);
  for (float& value : values) value = random.normal();
  return values;
}

/// 5000 weights, 50 biases and the padding behind them.
Model small_model() {
  return Model::build("small", {100}, {Linear{.name = "fc", .out_features = 50}}).value();
}

/// Weights and state that an optimizer works on.
struct Trained {
  Trained(const OptimizerOptions& options, const Model& model)
      : optimizer(make_optimizer(options, model).value()),
        weights(Parameters::initialized(model, 1).value()),
        state(optimizer->initial_state().value()) {}

  void update(const UpdateFactors& factors, std::span<const GradientRun> gradient) {
    optimizer->update(factors, gradient, weights, state);
  }
  void update(const UpdateFactors& factors, std::span<const float> gradient) {
    update(factors, std::array{GradientRun{0, gradient}});
  }

  std::unique_ptr<Optimizer> optimizer;
  Parameters weights;
  std::vector<Parameters> state;
};

std::vector<float> copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// Each optimizer, with all that it can do.
std::vector<OptimizerOptions> every_optimizer() {
  return {{.name = "sgd", .weight_decay = 0.01},
          {.name = "sgd", .momentum = 0.9, .weight_decay = 0.01},
          {.name = "sgd", .momentum = 0.9, .nesterov = true, .decay_vectors = false},
          {.name = "adam", .weight_decay = 0.01},
          {.name = "adamw", .weight_decay = 0.01, .decay_vectors = false},
          {.name = "lamb", .weight_decay = 0.01},
          {.name = "lamb", .weight_decay = 0.01, .decay_vectors = false},
          {.name = "lars", .momentum = 0.9, .weight_decay = 0.01}};
}

/// Random, and zero between the parameters.
Parameters random_gradient(const Model& model, std::uint64_t seed) {
  auto gradient = Parameters::zeros(model).value();
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const auto values = random_floats(gradient.values(i).size(), seed + i);
    std::copy(values.begin(), values.end(), gradient.values(i).begin());
  }
  return gradient;
}

TEST(Sgd, follows_its_formula_step_by_step) {
  // Every product and sum rounded by itself, in this order.
  const Model model = small_model();
  Trained sgd({.momentum = 0.9, .weight_decay = 0.01}, model);
  const auto gradient = random_gradient(model, 1);
  auto expected = copy(sgd.weights.values());
  std::vector<float> buf(model.flat_size());
  for (std::uint64_t update = 1; update <= 3; ++update) {
    sgd.update({update, 0.1, 0.25f}, gradient.values());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      volatile float scaled = gradient.values()[i] * 0.25f, decayed = 0.01f * expected[i];
      volatile float g = scaled + decayed, kept = 0.9f * buf[i];
      buf[i] = kept + g;
      volatile float change = 0.1f * buf[i];
      expected[i] = expected[i] - change;
    }
    EXPECT_EQ(copy(sgd.weights.values()), expected);
  }
}

TEST(Sgd, keeps_no_state_without_momentum) {
  const Model model = small_model();
  Trained without({}, model), with({.momentum = 1e-30}, model);
  EXPECT_EQ(without.state.size(), 0u);
  EXPECT_EQ(with.state.size(), 1u);
  const auto gradient = random_gradient(model, 1);
  without.update({1, 0.1, 0.25f}, gradient.values());
  with.update({1, 0.1, 0.25f}, gradient.values());
  EXPECT_EQ(copy(without.weights.values()), copy(with.weights.values()));
}

TEST(Optimizer, gives_the_same_bits_for_any_split) {
  const Model model = small_model();
  for (const auto& options : every_optimizer()) {
    Trained whole(options, model), parts(options, model);
    for (std::uint64_t update = 1; update <= 3; ++update) {
      const auto gradient = random_gradient(model, 10 * update);
      whole.update({update, 0.1, 0.5f}, gradient.values());
      std::vector<GradientRun> runs;
      for (auto [begin, end] : {std::pair<std::size_t, std::size_t>{0, 1},
                                {1, 18},
                                {18, 18},
                                {18, 4099},
                                {4099, 5007},
                                {5007, model.flat_size()}})
        runs.push_back({begin, gradient.values().subspan(begin, end - begin)});
      parts.update({update, 0.1, 0.5f}, runs);
    }
    EXPECT_EQ(copy(whole.weights.values()), copy(parts.weights.values())) << options.name;
    for (std::size_t i = 0; i < whole.state.size(); ++i)
      EXPECT_EQ(copy(whole.state[i].values()), copy(parts.state[i].values())) << options.name;
  }
}

// Nodes of one job may have different CPUs, and a job may be resumed on others: as with LeNet-5's
// weights, jobs cannot be resumed across a change of these numbers.
TEST(Optimizer, ends_in_these_weights_on_every_cpu) {
  const Model model = small_model();
  std::vector<std::string> digests;
  for (const auto& options : every_optimizer()) {
    Trained trained(options, model);
    for (std::uint64_t update = 1; update <= 20; ++update)
      trained.update({update, 0.01, 0.5f}, random_gradient(model, 10 * update).values());
    digests.push_back(fmt::format("{:016x}", digest_of(trained.weights.values())));
  }
  EXPECT_THAT(digests,
              testing::ElementsAre("76f2c6e0eed597ed", "1f483cccdf8f2b7a", "ad91f20d214f600a",
                                   "7ddd64bb15694670", "582d8ada890736d3", "ef8e41cdd4087cd2",
                                   "1e0ac580bd8f6274", "4d2a4353f9ecdeea"));
}

TEST(Optimizer, leaves_what_is_zero_between_parameters_and_statistics_alone) {
  ModelBuilder builder("normed", {3, 8, 8});
  const auto conv = builder.add(Convolution{.name = "conv", .out_channels = 3}, builder.input());
  builder.add(BatchNorm{.name = "bn"}, conv);
  const Model model = builder.build().value();
  ASSERT_LT(model.trained_size(), model.flat_size());
  for (const auto& options : every_optimizer()) {
    Trained trained(options, model);
    const auto before = copy(trained.weights.values());
    trained.update({1, 0.1, 1.0f}, random_gradient(model, 1).values());
    std::vector<bool> is_trained(model.flat_size());
    for (const auto& info : model.parameters())
      if (info.kind == ParameterKind::trained)
        std::fill_n(is_trained.begin() + static_cast<std::ptrdiff_t>(info.offset), info.elements,
                    true);
    for (std::size_t i = 0; i < model.flat_size(); ++i)
      EXPECT_EQ(trained.weights.values()[i] != before[i], is_trained[i]) << options.name << i;
  }
}

TEST(Optimizer, stays_finite_where_no_gradient_ever_was) {
  const Model model = small_model();
  for (auto options : every_optimizer()) {
    options.epsilon = 1e-30;
    options.weight_decay = 0;
    Trained trained(options, model);
    const auto before = copy(trained.weights.values());
    for (std::uint64_t update = 1; update <= 2; ++update)
      trained.update({update, 0.1, 1.0f}, std::vector<float>(model.flat_size()));
    EXPECT_EQ(copy(trained.weights.values()), before) << options.name;
  }
}

TEST(Optimizer, refuses_options_out_of_range_by_name) {
  EXPECT_TRUE(OptimizerOptions{}.validate().ok());
  for (auto [options, name] :
       {std::pair{OptimizerOptions{.momentum = 1.0}, "momentum is 1"},
        {OptimizerOptions{.momentum = std::numeric_limits<double>::quiet_NaN()}, "momentum is nan"},
        {OptimizerOptions{.weight_decay = -1.0}, "weight_decay is -1"},
        {OptimizerOptions{.name = "adam", .beta2 = 1.0}, "beta2 is 1"},
        {OptimizerOptions{.name = "lamb", .epsilon = 0}, "epsilon is 0"},
        {OptimizerOptions{.name = "lars", .trust_coefficient = 0}, "trust_coefficient is 0"},
        {OptimizerOptions{.nesterov = true}, "nesterov"}}) {
    const auto made = make_optimizer(options, small_model());
    ASSERT_EQ(made.code(), Code::invalid_argument) << name;
    EXPECT_THAT(made.error().message, HasSubstr(name));
  }
  const auto made = make_optimizer({.name = "adagrad"}, small_model());
  ASSERT_EQ(made.code(), Code::not_found);
  EXPECT_THAT(made.error().message, HasSubstr("sgd, adam, adamw, lamb, lars"));
}

TEST(OptimizerDeathTest, of_a_part_of_a_gradient_aborts) {
  const Model model = small_model();
  Trained trained({}, model);
  const auto gradient = random_floats(model.flat_size(), 1);
  EXPECT_DEATH(trained.update({}, std::span(gradient).first(5000)), "part of a gradient");
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
