#include "kernels/loss.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/internal/loss.hpp"
#include "kernels/philox.hpp"
#include "kernels/workspace.hpp"

namespace troupe::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Tensor random_floats(Shape shape, std::uint64_t seed) {
  Tensor tensor = Tensor::allocate(DType::f32, shape).value();
  Philox random(seed);
  for (float& value : tensor.data<float>()) value = random.uniform(-1.0f, 1.0f);
  return tensor;
}

class MeanSquaredError : public testing::Test {
protected:
  Model model = Model::build("regression", {6}, {Linear{"a", 9}, Tanh{}, Linear{"b", 5}}).value();
  Parameters parameters = Parameters::initialized(model, 1).value();
  std::vector<float> gradients = std::vector<float>(model.flat_size());
  Tensor inputs = random_floats({4, 6}, 1);
  Tensor targets = random_floats({4, 5}, 2);

  Workspace make(int threads = 1) {
    return Workspace::create(model, {.loss = Loss::mean_squared_error, .threads = threads}).value();
  }
};

TEST_F(MeanSquaredError, is_the_mean_over_a_samples_elements_summed_over_samples) {
  Workspace workspace = make();
  const LossStats stats =
      workspace.forward_backward(parameters, inputs, targets, gradients).value();
  const Tensor outputs = workspace.predict(parameters, inputs).value();
  double squares = 0.0;
  for (std::size_t i = 0; i < 20; ++i) {
    const double y = outputs.data<float>()[i];
    const double t = targets.data<float>()[i];
    squares += (y - t) * (y - t);
  }
  EXPECT_EQ(stats.count, 4);
  EXPECT_EQ(stats.correct, 0);
  EXPECT_NEAR(stats.loss_sum / 4, squares / 20, 1e-6) << "the mean over all elements";
  EXPECT_EQ(workspace.evaluate(parameters, inputs, targets).value().loss_sum, stats.loss_sum);
}

TEST_F(MeanSquaredError, has_gradients_that_are_its_central_differences) {
  Workspace workspace = make();
  ASSERT_TRUE(workspace.forward_backward(parameters, inputs, targets, gradients).ok());
  constexpr float kStep = 1e-2f;
  for (const ParameterInfo& info : model.parameters())
    for (std::size_t i = info.offset; i < info.offset + info.elements; ++i) {
      const float before = parameters.values()[i];
      const auto loss_at = [&](float value) {
        parameters.values()[i] = value;
        return workspace.evaluate(parameters, inputs, targets).value().loss_sum;
      };
      const double difference =
          (loss_at(before + kStep) - loss_at(before - kStep)) / (2.0 * double{kStep});
      parameters.values()[i] = before;
      EXPECT_NEAR(gradients[i], difference, 2e-3) << info.name;
    }
}

TEST_F(MeanSquaredError, has_the_same_bits_by_any_number_of_threads) {
  const Model wide = Model::build("wide", {3, 700}, {Relu{}}).value();
  const Tensor outputs = random_floats({7, 3, 700}, 3), wanted = random_floats({7, 3, 700}, 4);
  const auto run = [&](int threads, std::vector<float>& gradient) {
    gradient.resize(outputs.elements());
    auto loss = make_loss(wide, {.loss = Loss::mean_squared_error, .threads = threads}).value();
    EXPECT_TRUE(loss->read(wanted, 7).ok());
    return loss->compute(loss->labels().data(), 7, outputs.data<float>().data(), gradient.data());
  };
  std::vector<float> one, three;
  const LossStats stats = run(1, one);
  EXPECT_EQ(stats.count, 21) << "one for each token";
  EXPECT_EQ(run(3, three).loss_sum, stats.loss_sum);
  EXPECT_EQ(one, three);
}

TEST_F(MeanSquaredError, takes_outputs_of_any_shape_and_any_number_of_samples) {
  const Model images = Model::build("images", {2, 3, 3}, {Tanh{}}).value();
  Workspace workspace = Workspace::create(images, {.loss = Loss::mean_squared_error}).value();
  const Parameters none = Parameters::zeros(images).value();
  const Tensor x = random_floats({300, 2, 3, 3}, 5), t = random_floats({300, 2, 3, 3}, 6);
  const LossStats all = workspace.evaluate(none, x, t).value();
  EXPECT_EQ(all.count, 300);
  LossStats parts;
  for (const auto& [begin, end] : {std::pair{0, 40}, {40, 300}})
    parts +=
        workspace.evaluate(none, x.rows(begin, end).value(), t.rows(begin, end).value()).value();
  EXPECT_NEAR(all.loss_sum, parts.loss_sum, 1e-9 * all.loss_sum);
}

TEST_F(MeanSquaredError, refuses_targets_of_another_type_or_shape_and_names_both) {
  Workspace workspace = make();
  const auto error_of = [&](const Tensor& given) {
    const auto result = workspace.forward_backward(parameters, inputs, given, gradients);
    return result.ok() ? std::string("none") : to_string(result.error());
  };
  EXPECT_THAT(
      error_of(Tensor::zeros(DType::i32, {4, 5}).value()),
      AllOf(HasSubstr("f32 [4] + [5]"), HasSubstr("i32 [4, 5]"), HasSubstr("shape_mismatch")));
  EXPECT_THAT(error_of(Tensor::zeros(DType::f32, {4, 6}).value()), HasSubstr("f32 [4, 6]"));
  EXPECT_THAT(error_of(Tensor::zeros(DType::f32, {3, 5}).value()), HasSubstr("f32 [3, 5]"));
  EXPECT_THAT(error_of(Tensor::zeros(DType::f32, {20}).value()), HasSubstr("f32 [20]"));
  EXPECT_EQ(error_of(targets), "none") << "and can be used again";
}

TEST_F(MeanSquaredError, refuses_options_that_are_of_classes) {
  const auto error_of = [&](WorkspaceOptions options) {
    options.loss = Loss::mean_squared_error;
    const auto result = Workspace::create(model, options);
    return result.ok() ? std::string("none") : to_string(result.error());
  };
  EXPECT_THAT(error_of({.label_smoothing = 0.1f}),
              AllOf(HasSubstr("label_smoothing"), HasSubstr("mean_squared_error")));
  EXPECT_THAT(error_of({.ignored_label = -1}), HasSubstr("ignored_label"));
}

TEST_F(MeanSquaredError, of_outputs_that_are_not_finite_is_not_finite) {
  inputs.data<float>()[0] = std::nanf("");
  Workspace workspace = make();
  EXPECT_TRUE(std::isnan(workspace.evaluate(parameters, inputs, targets).value().loss_sum));
}

}  // namespace
}  // namespace troupe::kernels
