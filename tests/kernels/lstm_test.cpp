#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/models.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/philox.hpp"
#include "kernels/workspace.hpp"

namespace troupe::kernels {
namespace {

constexpr std::int64_t kSamples = 32, kSteps = 12, kFeatures = 3;

struct Sequences {
  Tensor inputs = Tensor::zeros(DType::f32, {kSamples, kSteps, kFeatures}).value();
  Tensor labels = Tensor::zeros(DType::u8, {kSamples}).value();
};

/// Noise, and one mark in the first step, whose feature is the class: to be remembered to the end.
Sequences marked_sequences(std::uint64_t seed) {
  Sequences samples;
  Philox random(seed);
  for (float& value : samples.inputs.data<float>()) value = random.uniform(-0.3f, 0.3f);
  for (std::size_t i = 0; i < kSamples; ++i) {
    const auto label = static_cast<std::uint8_t>(random.below(kFeatures));
    samples.labels.data<std::uint8_t>()[i] = label;
    samples.inputs.data<float>()[i * kSteps * kFeatures + label] += 2.0f;
  }
  return samples;
}

class LstmModel : public testing::Test {
protected:
  Model model = make_model("lstm", {.input = {kSteps, kFeatures},
                                    .classes = kFeatures,
                                    .lstm = {.layers = 2, .width = 16}})
                    .value();
  Parameters parameters = Parameters::initialized(model, 1).value();

  std::vector<float> gradients_of(Workspace& workspace, const Sequences& samples) {
    std::vector<float> gradients(model.flat_size());
    EXPECT_TRUE(
        workspace.forward_backward(parameters, samples.inputs, samples.labels, gradients).ok());
    return gradients;
  }
};

TEST_F(LstmModel, gives_the_same_bits_each_time_and_on_any_thread) {
  const Sequences samples = marked_sequences(1);
  for (const int threads : {1, 2}) {
    Workspace first = Workspace::create(model, {.threads = threads}).value();
    const auto expected = gradients_of(first, samples);
    gradients_of(first, marked_sequences(2));
    EXPECT_EQ(gradients_of(first, samples), expected) << "after other samples";
    std::vector<std::thread> running;
    std::vector<int> same(3);
    for (std::size_t i = 0; i < same.size(); ++i)
      running.emplace_back([&, i] {
        Workspace own = Workspace::create(model, {.threads = threads}).value();
        same[i] = gradients_of(own, samples) == expected ? 1 : 0;
      });
    for (std::thread& thread : running) thread.join();
    EXPECT_EQ(same, std::vector<int>(3, 1)) << threads;
    std::thread([&] { EXPECT_EQ(gradients_of(first, samples), expected); }).join();
  }
}

TEST_F(LstmModel, learns_to_remember_what_came_first) {
  Workspace workspace = Workspace::create(model).value();
  const Sequences samples = marked_sequences(3);
  const auto adam = make_optimizer({.name = "adam"}, model).value();
  auto state = adam->initial_state().value();
  std::vector<float> gradients(model.flat_size());
  for (std::uint64_t step = 1; step <= 200; ++step) {
    ASSERT_TRUE(
        workspace.forward_backward(parameters, samples.inputs, samples.labels, gradients).ok());
    adam->update({step, 0.01, 1.0f / kSamples}, std::array{GradientRun{0, gradients}}, parameters,
                 state);
  }
  const LossStats stats = workspace.evaluate(parameters, samples.inputs, samples.labels).value();
  EXPECT_EQ(stats.correct, kSamples) << "loss " << stats.loss_sum / kSamples;
}

TEST_F(LstmModel, evaluates_to_the_same_loss_as_it_trains_on) {
  Workspace workspace = Workspace::create(model).value();
  const Sequences samples = marked_sequences(4);
  std::vector<float> gradients(model.flat_size());
  EXPECT_EQ(workspace.forward_backward(parameters, samples.inputs, samples.labels, gradients)
                .value()
                .loss_sum,
            workspace.evaluate(parameters, samples.inputs, samples.labels).value().loss_sum);
}

TEST(LstmModelOfImages, takes_their_rows_as_steps) {
  const Model model =
      make_model("lstm", {.input = {1, 6, 4}, .classes = 3, .lstm = {.width = 5}}).value();
  const Model steps =
      make_model("lstm", {.input = {6, 4}, .classes = 3, .lstm = {.width = 5}}).value();
  Tensor images = Tensor::zeros(DType::u8, {2, 1, 6, 4}).value();
  for (std::size_t i = 0; i < 48; ++i)
    images.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(5 * i);
  const auto logits = [&](const Model& of, const Tensor& inputs) {
    Workspace workspace = Workspace::create(of).value();
    const Tensor result = workspace.predict(Parameters::initialized(of, 1).value(), inputs).value();
    return std::vector<float>(result.data<float>().begin(), result.data<float>().end());
  };
  EXPECT_EQ(logits(model, images), logits(steps, images.reshaped({2, 6, 4}).value()));
}

}  // namespace
}  // namespace troupe::kernels
