#include "kernels/custom_layer.hpp"

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/model_builder.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/device_network.hpp"
#include "tests/kernels/gradient_check.hpp"
#include "tests/kernels/reference.hpp"

namespace troupe::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// y = a b + c of two inputs of one shape [..., features], with a parameter c of each feature.
class Product final : public ReferenceLayer {
public:
  Result<Shape> output_shape(std::span<const Shape> inputs) const override {
    if (inputs.size() != 2 || inputs[0] != inputs[1])
      return Error{Code::shape_mismatch, "needs two inputs of one shape"};
    return inputs[0];
  }
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override {
    return {{"offset", Shape{inputs[0][inputs[0].rank() - 1]}, Initial::constant(0.5f)}};
  }
  Status forward(const CustomForward& pass) const override {
    const std::size_t n = pass.parameters[0].size();
    for (std::size_t i = 0; i < pass.output.size(); ++i)
      pass.output[i] = pass.inputs[0][i] * pass.inputs[1][i] + pass.parameters[0][i % n];
    return {};
  }
  Status backward(const CustomBackward& pass) const override {
    const std::size_t n = pass.parameters[0].size();
    for (std::size_t i = 0; i < pass.output.size(); ++i) {
      const float given = pass.output_gradient[i];
      pass.parameter_gradients[0][i % n] += given;
      if (!pass.input_gradients[0].empty()) pass.input_gradients[0][i] = given * pass.inputs[1][i];
      if (!pass.input_gradients[1].empty()) pass.input_gradients[1][i] = given * pass.inputs[0][i];
    }
    return {};
  }
  void reference(std::int64_t, std::span<const std::vector<double>* const> inputs,
                 std::span<const double* const> parameters,
                 std::vector<double>& output) const override {
    const std::size_t n = 5;
    for (std::size_t i = 0; i < output.size(); ++i)
      output[i] = (*inputs[0])[i] * (*inputs[1])[i] + parameters[0][i % n];
  }
};

/// What a test makes of each part of a layer.
struct Scripted final : CustomLayer {
  std::function<Result<Shape>(std::span<const Shape>)> shape = [](std::span<const Shape> inputs) {
    return inputs[0];
  };
  std::vector<ParameterSpec> learns;
  std::function<Status(const CustomForward&)> on_forward = [](const CustomForward& pass) {
    std::copy(pass.inputs[0].begin(), pass.inputs[0].end(), pass.output.begin());
    return Status{};
  };
  std::function<Status(const CustomBackward&)> on_backward = [](const CustomBackward& pass) {
    if (!pass.input_gradients[0].empty())
      std::copy(pass.output_gradient.begin(), pass.output_gradient.end(),
                pass.input_gradients[0].begin());
    return Status{};
  };

  Result<Shape> output_shape(std::span<const Shape> inputs) const override { return shape(inputs); }
  std::vector<ParameterSpec> parameters(std::span<const Shape>) const override { return learns; }
  Status forward(const CustomForward& pass) const override { return on_forward(pass); }
  Status backward(const CustomBackward& pass) const override { return on_backward(pass); }
};

Custom scripted(const std::function<void(Scripted&)>& change) {
  auto layer = std::make_shared<Scripted>();
  change(*layer);
  return {"own", layer};
}

std::string error_of_model(LayerSpec layer) {
  const auto model = Model::build("m", {4}, {std::move(layer)});
  return model.ok() ? std::string("none") : to_string(model.error());
}

Result<Model> model_with_products() {
  ModelBuilder model("products", {3, 5});
  const auto product = std::make_shared<Product>();
  const auto x = model.add(Linear{"a", 5}, model.input());
  const auto y = model.add(Custom{"p", product}, x, model.input());
  model.add(Linear{"b", 4}, model.add(Custom{"q", product}, y, x));
  return model.build();
}

TEST(CustomLayer, has_gradients_like_any_other_and_shares_an_object) {
  const auto model = model_with_products();
  ASSERT_TRUE(model.ok()) << to_string(model.error());
  for (const int threads : {1, 2})
    check_gradients(*model, {{}, {}, 3, KernelChoice::automatic, threads});
  EXPECT_TRUE(model->find_parameter("p.offset").has_value());
  EXPECT_EQ(model->parameters()[*model->find_parameter("q.offset")].shape, Shape{5});
}

TEST(CustomLayer, that_computes_what_a_layer_of_ours_does_gives_the_same_bits) {
  const Custom relu_like = scripted([](Scripted& layer) {
    layer.on_forward = [](const CustomForward& pass) {
      for (std::size_t i = 0; i < pass.output.size(); ++i)
        pass.output[i] = pass.inputs[0][i] <= 0.0f ? 0.0f : pass.inputs[0][i];
      return Status{};
    };
    layer.on_backward = [](const CustomBackward& pass) {
      for (std::size_t i = 0; i < pass.output.size(); ++i)
        pass.input_gradients[0][i] = pass.output[i] <= 0.0f ? 0.0f : pass.output_gradient[i];
      return Status{};
    };
  });
  const auto gradients_of = [](LayerSpec activation) {
    const Model model =
        Model::build("m", {6}, {Linear{"a", 7}, std::move(activation), Linear{"b", 3}}).value();
    Workspace workspace = Workspace::create(model, {.kernels = KernelChoice::library,
                                                    .device = test_device().value()})
                              .value();
    const Parameters parameters = Parameters::initialized(model, 3).value();
    Tensor x = Tensor::zeros(DType::f32, {5, 6}).value();
    for (std::size_t i = 0; i < 30; ++i) x.data<float>()[i] = static_cast<float>(i % 7) - 3.0f;
    const Tensor labels = Tensor::zeros(DType::u8, {5}).value();
    std::vector<float> gradients(model.flat_size());
    EXPECT_TRUE(workspace.forward_backward(parameters, x, labels, gradients).ok());
    return gradients;
  };
  EXPECT_EQ(gradients_of(relu_like), gradients_of(Relu{}));
}

TEST(CustomLayer, that_is_null_or_has_no_name_is_refused_when_the_model_is_built) {
  EXPECT_THAT(error_of_model(Custom{"own", nullptr}),
              AllOf(HasSubstr("custom layer 'own' is null"), HasSubstr("invalid_argument")));
  EXPECT_THAT(error_of_model(Custom{"", std::make_shared<Scripted>()}), HasSubstr("no name"));
}

TEST(CustomLayer, whose_shapes_are_no_samples_is_refused) {
  const auto giving = [](Result<Shape> shape) {
    return error_of_model(scripted(
        [&](Scripted& layer) { layer.shape = [shape](std::span<const Shape>) { return shape; }; }));
  };
  EXPECT_THAT(giving(Shape{0}), AllOf(HasSubstr("'own'"), HasSubstr("its output is [0]")));
  EXPECT_THAT(giving(Shape{1, 1, 1, 1, 1, 4}), HasSubstr("at most 5 axes"));
  EXPECT_THAT(giving(Error{Code::shape_mismatch, "wants [3]"}),
              AllOf(HasSubstr("'own': wants [3]"), HasSubstr("shape_mismatch")));
  EXPECT_THAT(error_of_model(scripted([](Scripted& layer) {
                layer.shape = [](std::span<const Shape>) -> Result<Shape> {
                  throw std::runtime_error("oh");
                };
              })),
              AllOf(HasSubstr("threw"), HasSubstr("oh")));
}

TEST(CustomLayer, whose_parameters_are_not_its_own_and_trained_is_refused) {
  const auto with = [](std::vector<ParameterSpec> learns) {
    return error_of_model(scripted([&](Scripted& layer) { layer.learns = learns; }));
  };
  EXPECT_THAT(with({{"", Shape{2}, {}}}), HasSubstr("has no name"));
  EXPECT_THAT(with({{"a", Shape{0}, {}}}), HasSubstr("'a' [0] has no elements"));
  EXPECT_THAT(with({{"a", Shape{2}, {}}, {"a", Shape{2}, {}}}), HasSubstr("name of another"));
  EXPECT_THAT(with({{"a", Shape{2}, {}, ParameterKind::statistic, 0.1f}}), HasSubstr("statistic"));
  EXPECT_THAT(with({{"a", Shape{2}, {}, ParameterKind::trained, 0.0f, "b.weight"}}),
              HasSubstr("tied"));
  EXPECT_EQ(with({{"a", Shape{2}, {}}}), "none");
}

TEST(CustomLayer, whose_pass_fails_or_throws_ends_that_pass_with_its_name) {
  const auto error_of = [](const std::function<void(Scripted&)>& change) {
    const Model model = Model::build("m", {4}, {Linear{"l", 4}, scripted(change)}).value();
    Workspace workspace = Workspace::create(model, {.device = test_device().value()}).value();
    const Parameters parameters = Parameters::zeros(model).value();
    std::vector<float> gradients(model.flat_size());
    const auto result =
        workspace.forward_backward(parameters, Tensor::zeros(DType::f32, {2, 4}).value(),
                                   Tensor::zeros(DType::u8, {2}).value(), gradients);
    return result.ok() ? std::string("none") : to_string(result.error());
  };
  EXPECT_EQ(error_of([](Scripted&) {}), "none");
  EXPECT_THAT(error_of([](Scripted& layer) {
                layer.on_forward = [](const CustomForward&) {
                  return Status{Code::resource_exhausted, "no room"};
                };
              }),
              AllOf(HasSubstr("'own': forward: no room"), HasSubstr("resource_exhausted")));
  EXPECT_THAT(error_of([](Scripted& layer) {
                layer.on_backward = [](const CustomBackward&) -> Status {
                  throw std::runtime_error("oh");
                };
              }),
              AllOf(HasSubstr("'own': backward threw"), HasSubstr("oh")));
}

TEST(CustomLayer, finds_zeros_where_it_is_to_write) {
  const auto layer = scripted([](Scripted& own) {
    own.learns = {{"a", Shape{3}, Initial::constant(1.0f)}};
    own.on_forward = [](const CustomForward& pass) {
      for (const float value : pass.output) EXPECT_EQ(value, 0.0f);
      return Status{};
    };
    own.on_backward = [](const CustomBackward& pass) {
      for (const float value : pass.parameter_gradients[0]) EXPECT_EQ(value, 0.0f);
      EXPECT_TRUE(pass.input_gradients[0].empty()) << "nobody asks for the input's";
      return Status{};
    };
  });
  const Model model = Model::build("m", {4}, {layer}).value();
  Workspace workspace = Workspace::create(model, {.device = test_device().value()}).value();
  const Parameters parameters = Parameters::initialized(model, 1).value();
  std::vector<float> gradients(model.flat_size(), 7.0f);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(workspace
                    .forward_backward(parameters, Tensor::zeros(DType::f32, {2, 4}).value(),
                                      Tensor::zeros(DType::u8, {2}).value(), gradients)
                    .ok());
  for (const float value : gradients) EXPECT_EQ(value, 0.0f);
}

TEST(CustomLayerCheck, passes_a_layer_whose_gradients_are_right) {
  const Status status = check_custom_layer({"p", std::make_shared<Product>()}, {{3, 5}, {3, 5}});
  EXPECT_TRUE(status.ok()) << to_string(status.error());
}

TEST(CustomLayerCheck, tells_which_gradient_is_wrong) {
  const auto layer = scripted([](Scripted& own) {
    own.on_backward = [](const CustomBackward& pass) {
      for (std::size_t i = 0; i < pass.output.size(); ++i)
        pass.input_gradients[0][i] = 2.0f * pass.output_gradient[i];
      return Status{};
    };
  });
  const Status status = check_custom_layer(layer, {{4}});
  ASSERT_EQ(status.code(), Code::internal);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("'own'"), HasSubstr("input 0"), HasSubstr("backward")));
}

TEST(CustomLayerCheck, notices_a_layer_that_remembers_its_last_pass) {
  float passes = 0.0f;
  const auto layer = scripted([&](Scripted& own) {
    own.on_forward = [&](const CustomForward& pass) {
      passes += 1.0f;
      for (std::size_t i = 0; i < pass.output.size(); ++i)
        pass.output[i] = pass.inputs[0][i] + passes;
      return Status{};
    };
  });
  EXPECT_THAT(check_custom_layer(layer, {{4}}).error().message, HasSubstr("different bits"));
}

}  // namespace
}  // namespace troupe::kernels
