#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/models.hpp"
#include "kernels/simulated/internal/simulated_backend.hpp"
#include "kernels/workspace.hpp"

namespace troupe::kernels {
namespace {

/// What a workspace gives for one model and batch.
struct Outcome {
  LossStats loss;
  std::vector<float> gradients;
  std::vector<std::string> order;  ///< in which gradients were said to be ready
  LossStats evaluated;
  std::vector<float> predicted;
};

/// Two steps of different batches, an evaluation and a prediction. Whenever gradients are said to
/// be ready, `expected` (if any) must be there already.
Outcome run(const Model& model, const ComputeDevice& device, const Outcome* expected) {
  constexpr std::int64_t kBatch = 6;
  Workspace workspace =
      Workspace::create(model, {.label_smoothing = 0.1f, .device = device}).value();
  const Parameters parameters = Parameters::initialized(model, 3).value();
  std::mt19937 random(5);
  Tensor samples = Tensor::allocate(model.input_dtype() == DType::i32 ? DType::i32 : DType::u8,
                                    model.input().with_first(kBatch))
                       .value();
  if (samples.dtype() == DType::i32) {
    for (auto& id : samples.data<std::int32_t>())
      id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(model.vocabulary()));
  } else {
    for (auto& pixel : samples.data<std::uint8_t>()) pixel = static_cast<std::uint8_t>(random());
  }
  Tensor labels = Tensor::allocate(DType::i32, {kBatch * model.labels_per_sample()}).value();
  for (auto& label : labels.data<std::int32_t>()) label = static_cast<std::int32_t>(random() % 10);

  Outcome outcome;
  outcome.gradients.resize(model.flat_size());
  const auto ready = [&](const ParameterInfo& parameter) {
    outcome.order.push_back(parameter.name);
    if (expected == nullptr) return;
    const auto from = static_cast<std::ptrdiff_t>(parameter.offset);
    EXPECT_TRUE(std::equal(outcome.gradients.begin() + from, outcome.gradients.end(),
                           expected->gradients.begin() + from))
        << parameter.name << " is not final";
  };
  // Another batch first, whose gradients must not be left.
  const Tensor few = samples.rows(0, 2).value();
  const Tensor few_labels = labels.rows(0, 2 * model.labels_per_sample()).value();
  EXPECT_TRUE(
      workspace.forward_backward(parameters, few, few_labels, outcome.gradients, {.key = {1, 0, 0}})
          .ok());
  outcome.loss = workspace
                     .forward_backward(parameters, samples, labels, outcome.gradients,
                                       {.ready = ready, .key = {1, 1, 0}})
                     .value();
  outcome.evaluated = workspace.evaluate(parameters, samples, labels).value();
  const Tensor logits = workspace.predict(parameters, samples).value();
  outcome.predicted.assign(logits.data<float>().begin(), logits.data<float>().end());
  return outcome;
}

Model model_named(const std::string& name) {
  if (name == "gpt")
    return make_model("gpt", {.gpt = {.layers = 2,
                                      .heads = 2,
                                      .width = 16,
                                      .context = 8,
                                      .vocabulary = 30,
                                      .dropout = 0.2f}})
        .value();
  if (name == "resnet18")
    return make_model("resnet18", {.input = {3, 16, 16}, .small_images = true, .width = 4}).value();
  return make_model(name).value();
}

class OnASimulatedDevice : public testing::TestWithParam<std::string> {};

TEST_P(OnASimulatedDevice, training_has_the_bits_of_the_cpu) {
  const Model model = model_named(GetParam());
  const Outcome expected = run(model, ComputeDevice(), nullptr);
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const ComputeDevice device = ComputeDevice::open({Device::simulated, seed}).value();
    const Outcome outcome = run(model, device, &expected);
    EXPECT_EQ(outcome.loss.loss_sum, expected.loss.loss_sum);
    EXPECT_EQ(outcome.loss.correct, expected.loss.correct);
    EXPECT_EQ(outcome.loss.count, expected.loss.count);
    EXPECT_EQ(outcome.gradients, expected.gradients);
    EXPECT_EQ(outcome.order, expected.order);
    EXPECT_EQ(outcome.evaluated.loss_sum, expected.evaluated.loss_sum);
    EXPECT_EQ(outcome.evaluated.correct, expected.evaluated.correct);
    EXPECT_EQ(outcome.predicted, expected.predicted);
    EXPECT_EQ(device.memory().used, 0u) << "nothing is left behind";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OnASimulatedDevice,
                         testing::Values("mlp", "lenet5", "resnet18", "gpt"),
                         [](const auto& name) { return name.param; });

TEST(SimulatedTraining, says_that_a_batch_does_not_fit_and_takes_a_smaller_one) {
  const Model model = make_model("lenet5").value();
  const ComputeDevice device(simulated::make_backend({.memory = std::size_t{8} << 20}).value());
  Workspace workspace = Workspace::create(model, {.device = device}).value();
  const Parameters parameters = Parameters::initialized(model, 1).value();
  const Tensor images = Tensor::zeros(DType::u8, {1000, 28, 28}).value();
  const Tensor labels = Tensor::zeros(DType::u8, {1000}).value();
  std::vector<float> gradients(model.flat_size());
  const auto result = workspace.forward_backward(parameters, images, labels, gradients);
  ASSERT_EQ(result.code(), Code::resource_exhausted);
  EXPECT_NE(result.error().message.find("simulated has no "), std::string::npos)
      << result.error().message;
  EXPECT_TRUE(workspace
                  .forward_backward(parameters, images.rows(0, 10).value(),
                                    labels.rows(0, 10).value(), gradients)
                  .ok());
}

}  // namespace
}  // namespace troupe::kernels
