#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/internal/network.hpp"
#include "kernels/models.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/philox.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/gradient_check.hpp"
#include "tests/kernels/reference.hpp"

namespace troupe::kernels {
namespace {

/// 40 by 32: the last pooling gives 1 by 1, which adaptive pooling spreads over 7 by 7.
ModelConfig narrow() {
  return {.input = {3, 40, 32}, .classes = 3, .width = 2};
}

Tensor random_images(std::int64_t count) {
  Tensor images = Tensor::allocate(DType::f32, {count, 3, 40, 32}).value();
  Philox random(7);
  for (float& value : images.data<float>()) value = random.uniform(-1.0f, 1.0f);
  return images;
}

TEST(NarrowVgg, gives_what_its_layers_formulas_say) {
  const Model model = make_model("vgg16", narrow()).value();
  Parameters parameters = Parameters::initialized(model, 1).value();
  Network network = Network::create(model, 2, {.mode = Mode::inference}).value();
  const Tensor images = random_images(2);
  std::ranges::copy(images.data<float>(), network.input().begin());
  ASSERT_TRUE(network.forward(parameters.values().data()).ok());
  const auto wide = [](std::span<const float> values) {
    return std::vector<double>(values.begin(), values.end());
  };
  const auto expected =
      reference_forward(model, 2, wide(parameters.values()), wide(images.data<float>()));
  ASSERT_EQ(network.output().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(network.output()[i], expected[i], kForwardTolerance);
}

TEST(NarrowVgg, with_batch_norm_learns_a_few_samples_in_spite_of_its_dropout) {
  const Model model = make_model("vgg16_bn", narrow()).value();
  Parameters parameters = Parameters::initialized(model, 1).value();
  Workspace workspace = Workspace::create(model).value();
  const Tensor images = random_images(6);
  Tensor labels = Tensor::allocate(DType::u8, {6}).value();
  for (std::size_t i = 0; i < 6; ++i)
    labels.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % 3);
  const auto adam = make_optimizer({.name = "adam"}, model).value();
  auto state = adam->initial_state().value();
  std::vector<float> gradients(model.flat_size());
  double before = 0.0, after = 0.0;
  for (std::uint64_t step = 0; step < 60; ++step) {
    const LossStats stats =
        workspace.forward_backward(parameters, images, labels, gradients, {.key = {1, step, 0}})
            .value();
    if (step == 0) before = stats.loss_sum / 6;
    if (step >= 50) after += stats.loss_sum / 60;
    adam->update({step + 1, 0.003, 1.0f / 6.0f}, std::array{GradientRun{0, gradients}}, parameters,
                 state);
  }
  EXPECT_NEAR(before, std::log(3.0), 0.1);
  EXPECT_LT(after, 0.8 * before);
}

}  // namespace
}  // namespace troupe::kernels
