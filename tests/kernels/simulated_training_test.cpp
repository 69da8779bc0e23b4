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
  struct Step {
    LossStats loss;
    std::vector<float> gradients;
    std::vector<std::string> order;  ///< in which gradients were said to be ready
  };
  std::vector<Step> steps;
  LossStats evaluated;
  std::vector<float> predicted;
};

/// A step of another batch, some steps, of which a device records the second and repeats it with
/// what is different, an evaluation and a prediction. Whenever gradients are said to be ready,
/// `expected` (if any) must be there already.
Outcome run(const Model& model, const ComputeDevice& device, const Outcome* expected) {
  constexpr std::int64_t kBatch = 6;
  Workspace workspace =
      Workspace::create(model, {.label_smoothing = 0.1f, .device = device}).value();
  Parameters parameters = Parameters::initialized(model, 3).value();
  std::mt19937 random(5);
  Tensor samples = Tensor::allocate(model.input_dtype() == DType::i32 ? DType::i32 : DType::u8,
                                    model.input().with_first(kBatch))
                       .value();
  Tensor labels = Tensor::allocate(DType::i32, {kBatch * model.labels_per_sample()}).value();
  const auto draw = [&] {
    if (samples.dtype() == DType::i32) {
      for (auto& id : samples.data<std::int32_t>())
        id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(model.vocabulary()));
    } else {
      for (auto& pixel : samples.data<std::uint8_t>()) pixel = static_cast<std::uint8_t>(random());
    }
    for (auto& label : labels.data<std::int32_t>())
      label = static_cast<std::int32_t>(random() % 10);
  };

  Outcome outcome;
  // Another batch first, whose gradients must not be left.
  draw();
  std::vector<float> gradients(model.flat_size());
  const Tensor few = samples.rows(0, 2).value();
  const Tensor few_labels = labels.rows(0, 2 * model.labels_per_sample()).value();
  EXPECT_TRUE(
      workspace.forward_backward(parameters, few, few_labels, gradients, {.key = {1, 0, 0}}).ok());
  for (std::uint64_t step = 1; step <= 4; ++step) {
    draw();
    parameters.values(0)[0] += 0.125f;
    Outcome::Step& made = outcome.steps.emplace_back();
    const auto ready = [&](const ParameterInfo& parameter) {
      made.order.push_back(parameter.name);
      if (expected == nullptr) return;
      const auto from = static_cast<std::ptrdiff_t>(parameter.offset);
      EXPECT_TRUE(std::equal(gradients.begin() + from, gradients.end(),
                             expected->steps[step - 1].gradients.begin() + from))
          << parameter.name << " is not final at step " << step;
    };
    made.loss =
        workspace
            .forward_backward(
                parameters, samples, labels, gradients,
                {.ready = ready, .key = {1, step, 0}, .loss_scale = step % 2 == 0 ? 8.0f : 1.0f})
            .value();
    made.gradients = gradients;
  }
  const PassStatistics& passes = workspace.statistics();
  EXPECT_EQ(passes.not_recorded, "");
  if (device.kind() != Device::cpu) {
    EXPECT_EQ(passes.passes, 5u);
    EXPECT_EQ(passes.replayed, 2u);
  }
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
    for (std::size_t i = 0; i < expected.steps.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      const auto &step = outcome.steps[i], &expected_step = expected.steps[i];
      EXPECT_EQ(step.loss.loss_sum, expected_step.loss.loss_sum);
      EXPECT_EQ(step.loss.correct, expected_step.loss.correct);
      EXPECT_EQ(step.loss.count, expected_step.loss.count);
      EXPECT_EQ(step.gradients, expected_step.gradients);
      EXPECT_EQ(step.order, expected_step.order);
    }
    EXPECT_EQ(outcome.evaluated.loss_sum, expected.evaluated.loss_sum);
    EXPECT_EQ(outcome.evaluated.correct, expected.evaluated.correct);
    EXPECT_EQ(outcome.predicted, expected.predicted);
    EXPECT_EQ(device.memory().used, 0u) << "nothing is left behind";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OnASimulatedDevice,
                         testing::Values("mlp", "lenet5", "resnet18", "gpt"),
                         [](const auto& name) { return name.param; });

TEST(SimulatedTraining, records_again_what_reads_memory_that_was_moved) {
  const Model model = make_model("mlp").value();
  const ComputeDevice device = ComputeDevice::open({Device::simulated, 3}).value();
  Workspace workspace = Workspace::create(model, {.device = device}).value();
  Workspace on_cpu = Workspace::create(model).value();
  const Parameters parameters = Parameters::initialized(model, 1).value();
  Tensor images = Tensor::zeros(DType::u8, {2000, 28, 28}).value();
  Tensor labels = Tensor::zeros(DType::i32, {2000}).value();
  std::vector<float> gradients(model.flat_size()), expected(model.flat_size());
  for (int step = 0; step < 9; ++step) {
    // More labels than before need another place.
    if (step == 4) {
      ASSERT_TRUE(workspace.evaluate(parameters, images, labels).ok());
    }
    images.data<std::uint8_t>()[static_cast<std::size_t>(step)] = 200;
    labels.data<std::int32_t>()[0] = step;
    const Tensor few = images.rows(0, 3).value(), few_labels = labels.rows(0, 3).value();
    ASSERT_TRUE(workspace.forward_backward(parameters, few, few_labels, gradients).ok());
    ASSERT_TRUE(on_cpu.forward_backward(parameters, few, few_labels, expected).ok());
    EXPECT_EQ(gradients, expected) << "step " << step;
  }
  // Plainly, recorded, two of that; recorded again, four of that.
  EXPECT_EQ(workspace.statistics().replayed, 6u);
  EXPECT_EQ(workspace.statistics().not_recorded, "");
}

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
