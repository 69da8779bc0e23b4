// Whole models on CUDA against the CPU, and against themselves.
#include "kernels/workspace.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/models.hpp"
#include "kernels/parameters.hpp"
#include "kernels/philox.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

struct Case {
  std::string name;
  ModelConfig options;
  std::int64_t batch;
  std::int64_t classes;
};

/// What a workspace gives for random samples.
struct Outcome {
  LossStats loss, evaluated;  ///< the loss of the last step
  std::vector<float> gradients, predicted;
};

class CudaModels : public testing::TestWithParam<Case> {
protected:
  /// Steps as many as recording a pass takes and one more, each with another key and loss scale.
  Outcome run(const ComputeDevice& device) {
    WorkspaceOptions options;
    options.device = device;
    options.label_smoothing = 0.1f;
    options.ignored_label = 1;
    Workspace workspace = Workspace::create(model, options).value();
    Outcome outcome;
    outcome.gradients.resize(model.flat_size());
    for (std::uint64_t step = 1; step <= 4; ++step)
      outcome.loss =
          workspace
              .forward_backward(parameters, samples, labels, outcome.gradients,
                                {.key = {7, step, 1}, .loss_scale = step == 4 ? 4.0f : 2.0f})
              .value();
    const PassStatistics& passes = workspace.statistics();
    EXPECT_EQ(passes.replayed, device.kind() == Device::cpu ? 0u : 2u) << passes.not_recorded;
    outcome.evaluated = workspace.evaluate(parameters, samples, labels).value();
    const Tensor logits = workspace.predict(parameters, samples).value();
    outcome.predicted = {logits.data<float>().begin(), logits.data<float>().end()};
    return outcome;
  }

  Tensor random_samples() {
    const bool ids = model.input_dtype() == DType::i32;
    Tensor made =
        Tensor::allocate(ids ? DType::i32 : DType::u8, model.input().with_first(GetParam().batch))
            .value();
    Philox random(5);
    if (ids)
      for (auto& id : made.data<std::int32_t>())
        id =
            static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.vocabulary())));
    else
      for (auto& pixel : made.data<std::uint8_t>())
        pixel = static_cast<std::uint8_t>(random.below(256));
    return made;
  }
  Tensor random_labels() {
    Tensor made =
        Tensor::allocate(DType::i32, {GetParam().batch * model.labels_per_sample()}).value();
    Philox random(6);
    for (auto& label : made.data<std::int32_t>())
      label =
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(GetParam().classes)));
    return made;
  }

  Model model = make_model(GetParam().name, GetParam().options).value();
  Parameters parameters = Parameters::initialized(model, 3).value();
  Tensor samples = random_samples();
  Tensor labels = random_labels();
};

void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                  double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  double greatest = 0.0, difference = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(std::isfinite(actual[i])) << what << " " << i;
    greatest = std::max(greatest, std::abs(static_cast<double>(expected[i])));
    difference = std::max(
        difference, std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i])));
  }
  EXPECT_LE(difference, tolerance * greatest) << what;
}

TEST_P(CudaModels, give_what_the_cpu_gives_up_to_rounding) {
  // Of a tensor whose greatest is 1: sums of many terms after each other, in other orders.
  constexpr double kTolerance = 1e-3;
  const Outcome expected = run(ComputeDevice());
  const Outcome actual = run(test_device().value());
  EXPECT_EQ(actual.loss.count, expected.loss.count);
  EXPECT_NEAR(actual.loss.loss_sum, expected.loss.loss_sum,
              kTolerance * std::abs(expected.loss.loss_sum));
  EXPECT_NEAR(actual.evaluated.loss_sum, expected.evaluated.loss_sum,
              kTolerance * std::abs(expected.evaluated.loss_sum));
  expect_close(actual.predicted, expected.predicted, kTolerance, "logits");
  expect_close(actual.gradients, expected.gradients, kTolerance, "gradients");
}

TEST_P(CudaModels, give_the_same_bits_each_time) {
  const Outcome first = run(test_device().value());
  for (int i = 0; i < 3; ++i) {
    const Outcome again = run(test_device().value());
    EXPECT_EQ(again.loss.loss_sum, first.loss.loss_sum);
    EXPECT_EQ(again.loss.correct, first.loss.correct);
    EXPECT_EQ(again.evaluated.loss_sum, first.evaluated.loss_sum);
    EXPECT_TRUE(again.gradients == first.gradients);
    EXPECT_TRUE(again.predicted == first.predicted);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, CudaModels,
    testing::Values(
        Case{"lenet5", {}, 5, 10},
        Case{"resnet18", {.input = {3, 16, 16}, .small_images = true, .width = 8}, 3, 10},
        Case{"mlp", {}, 4, 10},
        Case{"vgg16", {.input = {3, 32, 32}, .classes = 7, .width = 2}, 1, 7},
        Case{"lstm", {.input = {1, 9, 5}, .classes = 6, .lstm = {.layers = 2, .width = 12}}, 3, 6},
        Case{"lstm_lm", {.input = {8}, .classes = 30, .lstm = {.width = 10}}, 3, 30},
        Case{"gpt",
             {.gpt = {.layers = 2,
                      .heads = 2,
                      .width = 16,
                      .context = 40,
                      .vocabulary = 130,
                      .dropout = 0.2f}},
             2,
             130}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace troupe::kernels
