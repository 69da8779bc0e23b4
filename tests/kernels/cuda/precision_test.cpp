// Products whose factors are rounded to 16 bits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/internal/network.hpp"
#include "kernels/models.hpp"
#include "kernels/parameters.hpp"
#include "kernels/philox.hpp"
#include "kernels/short_floats.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/device_network.hpp"
#include "tests/kernels/patterned_batch.hpp"

namespace troupe::kernels {
namespace {

std::vector<float> random_floats(std::size_t n, std::uint64_t stream) {
  std::vector<float> values(n);
  Philox random(9, {stream});
  for (float& value : values) value = random.uniform(-2.0f, 2.0f);
  return values;
}

std::vector<float> rounded(std::vector<float> values, DType type) {
  for (float& value : values)
    value = type == DType::bf16 ? bf16_value(bf16_bits(value)) : f16_value(f16_bits(value));
  return values;
}

/// What a layer is given, and what a pass there and back gives.
struct Given {
  std::vector<float> input, parameters, output_gradient;
};
struct Outcome {
  std::vector<float> output, gradients, input_gradient;
};

Outcome run(const Model& model, std::int64_t batch, DType precision, const Given& given) {
  DeviceNetwork network =
      DeviceNetwork::create(
          model, batch,
          {.choice = KernelChoice::library, .input_gradient = true, .precision = precision})
          .value();
  network.set_input(given.input);
  EXPECT_TRUE(network.forward(given.parameters).ok());
  Outcome outcome;
  outcome.gradients.resize(model.flat_size());
  EXPECT_TRUE(network.backward(given.output_gradient, outcome.gradients).ok());
  outcome.output = network.output();
  outcome.input_gradient = network.input_gradient();
  return outcome;
}

/// Sums of some hundred products in other orders, which tensor cores round towards zero; far below
/// what the rounding of a factor to f16 makes.
constexpr float kTolerance = 2e-4f;

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], kTolerance * std::max(1.0f, std::abs(expected[i])))
        << what << " " << i;
}

class CudaPrecision : public testing::TestWithParam<DType> {
protected:
  /// The layer on rounded factors in f32 gives what it gives on the factors as they are in the
  /// precision: so factors are rounded, and nothing else is. Of a bias the gradient's sum is that
  /// of the gradients as they are.
  void check(Shape input, LayerSpec layer, std::int64_t batch) {
    const Model model = Model::build("m", input, {std::move(layer)}).value();
    const auto elements = [&](const Shape& shape) {
      return static_cast<std::size_t>(batch * shape.elements());
    };
    const Given given{random_floats(elements(model.input()), 1),
                      random_floats(model.flat_size(), 2),
                      random_floats(elements(model.output()), 3)};
    Given factors{rounded(given.input, GetParam()), rounded(given.parameters, GetParam()),
                  rounded(given.output_gradient, GetParam())};
    const ParameterInfo* bias = nullptr;
    for (const ParameterInfo& info : model.parameters())
      if (info.name.ends_with("bias")) bias = &info;
    const auto copy_bias = [&](const std::vector<float>& from, std::vector<float>& to) {
      if (bias != nullptr)
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(bias->offset), bias->elements,
                    to.begin() + static_cast<std::ptrdiff_t>(bias->offset));
    };
    copy_bias(given.parameters, factors.parameters);
    Outcome expected = run(model, batch, DType::f32, factors);
    const Outcome unrounded = run(model, batch, DType::f32, given);
    copy_bias(unrounded.gradients, expected.gradients);
    const Outcome actual = run(model, batch, GetParam(), given);
    expect_near(actual.output, expected.output, "output");
    expect_near(actual.gradients, expected.gradients, "gradients");
    expect_near(actual.input_gradient, expected.input_gradient, "input gradient");
    EXPECT_NE(actual.output, unrounded.output);
  }
};

TEST_P(CudaPrecision, rounds_the_factors_of_a_linear_layer_and_nothing_else) {
  check({37}, Linear{"l", 23}, 19);
  check({5, 8}, Linear{.name = "l", .out_features = 7, .bias = false}, 3);
}

TEST_P(CudaPrecision, rounds_the_factors_of_a_convolution_and_nothing_else) {
  check({16, 6, 7}, Convolution{.name = "c", .out_channels = 24, .kernel = 3, .padding = 1}, 2);
  check({8, 9, 8},
        Convolution{.name = "c", .out_channels = 8, .kernel = 5, .stride = 2, .bias = false}, 3);
  check({8, 8, 7},
        Convolution{.name = "c", .out_channels = 8, .kernel = 3, .padding = 2, .dilation = 2}, 1);
}

TEST_P(CudaPrecision, fills_channels_up_to_what_tensor_cores_take) {
  check({1, 9, 9}, Convolution{.name = "c", .out_channels = 6, .kernel = 5, .padding = 2}, 3);
  check({3, 8, 8},
        Convolution{.name = "c", .out_channels = 17, .kernel = 3, .stride = 2, .padding = 1}, 2);
  check({9, 4, 4}, Convolution{.name = "c", .out_channels = 1, .kernel = 1}, 2);
}

TEST_P(CudaPrecision, leaves_convolutions_of_groups_in_f32) {
  const Model model =
      Model::build("m", {4, 5, 5},
                   {Convolution{.name = "c", .out_channels = 6, .kernel = 3, .groups = 2}})
          .value();
  const Given given{random_floats(200, 1), random_floats(model.flat_size(), 2),
                    random_floats(2 * 6 * 9, 3)};
  EXPECT_EQ(run(model, 2, GetParam(), given).gradients, run(model, 2, DType::f32, given).gradients);
}

/// Probabilities and results are rounded on the way too.
TEST_P(CudaPrecision, gives_attention_up_to_its_digits) {
  const double tolerance = GetParam() == DType::bf16 ? 0.03 : 0.004;
  const auto expect_alike = [&](const std::vector<float>& actual,
                                const std::vector<float>& expected, const char* what) {
    ASSERT_EQ(actual.size(), expected.size());
    float greatest = 0.0f;
    for (const float value : expected) greatest = std::max(greatest, std::abs(value));
    for (std::size_t i = 0; i < actual.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], tolerance * greatest) << what << " " << i;
  };
  for (const Attention& attention : {Attention{.heads = 2}, Attention{.heads = 2, .causal = false},
                                     Attention{.heads = 4, .kv_heads = 2},
                                     Attention{.heads = 3, .kv_heads = 1, .causal = false}}) {
    constexpr std::int64_t kBatch = 2, kTokens = 21, kDim = 8;
    const std::int64_t width = (attention.heads + 2 * attention.key_heads()) * kDim;
    const Model model = Model::build("m", {kTokens, width}, {attention}).value();
    const auto floats = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const Given given{random_floats(floats(kBatch * kTokens * width), 1),
                      {},
                      random_floats(floats(kBatch * kTokens * attention.heads * kDim), 3)};
    const Outcome expected = run(model, kBatch, DType::f32, given);
    const Outcome actual = run(model, kBatch, GetParam(), given);
    expect_alike(actual.output, expected.output, "output");
    SCOPED_TRACE(attention.heads * 10 + attention.key_heads());
    expect_alike(actual.input_gradient, expected.input_gradient, "input gradient");
    EXPECT_NE(actual.output, expected.output);
    EXPECT_EQ(run(model, kBatch, GetParam(), given).input_gradient, actual.input_gradient);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, CudaPrecision, testing::Values(DType::bf16, DType::f16),
                         [](const auto& x) { return std::string(to_string(x.param)); });

/// Whole models.
class CudaModelPrecision : public testing::TestWithParam<std::tuple<const char*, DType>> {
protected:
  static Model model() {
    const std::string name = std::get<0>(GetParam());
    if (name == "gpt")
      return make_model(
                 "gpt",
                 {.gpt = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocabulary = 50}})
          .value();
    if (name == "resnet18")
      return make_model("resnet18", {.input = {3, 16, 16}, .small_images = true, .width = 8})
          .value();
    return make_model(name).value();
  }

  static std::vector<float> run(const Model& model, DType precision) {
    constexpr std::int64_t kBatch = 4;
    Workspace workspace =
        Workspace::create(model, {.device = test_device().value(), .precision = precision}).value();
    const Parameters parameters = Parameters::initialized(model, 2).value();
    const auto [samples, labels] = patterned_batch(model, kBatch);
    std::vector<float> gradients(model.flat_size());
    EXPECT_TRUE(workspace.forward_backward(parameters, samples, labels, gradients).ok());
    return gradients;
  }
};

TEST_P(CudaModelPrecision, is_near_f32_and_not_the_same) {
  const Model model = this->model();
  const std::vector<float> exact = run(model, DType::f32);
  const std::vector<float> rounded = run(model, std::get<1>(GetParam()));
  double difference = 0.0, norm = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(rounded[i]) - static_cast<double>(exact[i]), 2);
    norm += std::pow(static_cast<double>(exact[i]), 2);
  }
  EXPECT_GT(difference, 0.0);
  EXPECT_LT(std::sqrt(difference / norm), 0.2);
}

TEST_P(CudaModelPrecision, has_the_same_bits_each_time) {
  const Model model = this->model();
  const auto first = run(model, std::get<1>(GetParam()));
  EXPECT_EQ(run(model, std::get<1>(GetParam())), first);
}

INSTANTIATE_TEST_SUITE_P(Of, CudaModelPrecision,
                         testing::Combine(testing::Values("lenet5", "resnet18", "gpt"),
                                          testing::Values(DType::bf16, DType::f16)),
                         [](const auto& x) {
                           return std::string(std::get<0>(x.param)) + "_" +
                                  std::string(to_string(std::get<1>(x.param)));
                         });

}  // namespace
}  // namespace troupe::kernels
