// Forward and backward passes against PyTorch's: reference/layers.py wrote what they should give.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "actors/checkpoint/file_system.hpp"
#include "actors/checkpoint/safetensors.hpp"
#include "kernels/internal/loss.hpp"
#include "kernels/internal/network.hpp"
#include "kernels/models.hpp"
#include "kernels/parameters.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

/// Of a value whose tensor's greatest is 1: rounding of sums of some dozen to a hundred terms, and
/// for gradients of two such after each other.
constexpr double kOutputTolerance = 3e-6;
constexpr double kGradientTolerance = 1e-5;

struct Case {
  std::string name;
  Shape input;
  std::vector<LayerSpec> layers;  ///< none: the decoder
};

std::vector<Case> cases() {
  const Attention full{.heads = 3, .causal = false};
  const Attention grouped{.heads = 4, .kv_heads = 2};
  return {
      {"convolution", {3, 6, 7}, {Convolution{.name = "l", .out_channels = 5, .kernel = 3}}},
      {"convolution_stride",
       {3, 7, 8},
       {Convolution{.name = "l", .out_channels = 4, .kernel = 3, .stride = 2, .padding = 1}}},
      {"convolution_groups",
       {4, 5, 5},
       {Convolution{
           .name = "l", .out_channels = 6, .kernel = 3, .padding = 1, .groups = 2, .bias = false}}},
      {"convolution_dilation",
       {2, 8, 7},
       {Convolution{.name = "l", .out_channels = 3, .kernel = 3, .padding = 2, .dilation = 2}}},
      {"batch_norm", {6, 4, 5}, {BatchNorm{"l"}}},
      {"group_norm", {6, 3, 4}, {GroupNorm{"l", 3}}},
      {"max_pooling", {3, 7, 6}, {Pooling{.kernel = 3, .stride = 2, .padding = 1}}},
      {"average_pooling", {3, 7, 6}, {Pooling{.kind = Pooling::Kind::average}}},
      {"global_average_pooling", {3, 7, 6}, {GlobalAveragePooling{}}},
      {"adaptive_average_pooling", {3, 7, 6}, {AdaptivePooling{Pooling::Kind::average, 3, 4}}},
      {"adaptive_max_pooling", {3, 7, 6}, {AdaptivePooling{Pooling::Kind::max, 3, 4}}},
      {"layer_norm", {5, 20}, {LayerNorm{"l"}}},
      {"rms_norm", {5, 20}, {RmsNorm{"l"}}},
      {"linear", {5, 20}, {Linear{"l", 7}}},
      {"relu", {40}, {Relu{}}},
      {"gelu_tanh", {40}, {Gelu{}}},
      {"gelu_erf", {40}, {Gelu{Gelu::Form::erf}}},
      {"silu", {40}, {Silu{}}},
      {"sigmoid", {40}, {Sigmoid{}}},
      {"tanh", {40}, {Tanh{}}},
      {"embedding", {6}, {Embedding{"l", 9, 5}}},
      {"attention", {6, 36}, {full}},
      {"attention_causal", {70, 12}, {Attention{.heads = 2}}},
      {"attention_grouped", {6, 32}, {grouped}},
      {"lstm", {6, 5}, {Lstm{.name = "l", .hidden = 4}}},
      {"lstm_of_two_layers",
       {5, 3},
       {Lstm{.name = "l", .hidden = 4, .layers = 2, .sequence = false}}},
      {"gpt", {7}, {}},
  };
}

class PyTorch : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    train::PosixFileSystem files;
    file_ = train::read_safetensors(files, TROUPE_PYTORCH_REFERENCE, train::Checksum::if_present)
                .value();
  }
  template <class T = float>
  std::span<const T> values(const std::string& name) const {
    const train::TensorView* const tensor = file_.find(GetParam().name + "/" + name);
    if (tensor == nullptr) {
      ADD_FAILURE() << "no " << name;
      return {};
    }
    return {reinterpret_cast<const T*>(tensor->bytes.data()), tensor->bytes.size() / sizeof(T)};
  }
  void expect_close(std::span<const float> actual, const std::string& name,
                    double tolerance) const {
    const auto expected = values(name);
    ASSERT_EQ(actual.size(), expected.size()) << name;
    double greatest = 1.0;
    for (const float value : expected)
      greatest = std::max(greatest, std::abs(static_cast<double>(value)));
    for (std::size_t i = 0; i < actual.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], tolerance * greatest) << name << " " << i;
  }
  void check(int threads) const;

  train::TensorFile file_;
};

void PyTorch::check(int threads) const {
  const Case& test = GetParam();
  const Model model =
      test.layers.empty()
          ? make_model(
                "gpt",
                {.gpt = {.layers = 2, .heads = 2, .width = 16, .context = 7, .vocabulary = 23}})
                .value()
          : Model::build(test.name, test.input, test.layers).value();
  const bool ids = model.input_dtype() == DType::i32;
  const auto batch = static_cast<std::int64_t>(values("input").size()) / model.input().elements();
  auto made = DeviceNetwork::create(model, batch, {.threads = threads, .input_gradient = !ids});
  if (made.code() == Code::not_supported && test_device().value().kind() != Device::cpu)
    GTEST_SKIP() << made.error().message;
  DeviceNetwork network = std::move(made).value();
  Parameters parameters = Parameters::initialized(model, 1).value();
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const ParameterInfo& info = model.parameters()[i];
    if (info.kind != ParameterKind::trained) continue;
    const auto given = values("parameter/" + info.name);
    ASSERT_EQ(given.size(), info.elements) << info.name;
    std::ranges::copy(given, parameters.values(i).begin());
  }
  if (ids)
    network.set_ids(values<std::int32_t>("input"));
  else
    network.set_input(values("input"));
  ASSERT_TRUE(network.forward(parameters.values()).ok());
  expect_close(network.output(), "output", kOutputTolerance);
  std::vector<float> gradients(model.flat_size());
  ASSERT_TRUE(network.backward(values("factors"), gradients).ok());
  for (const ParameterInfo& info : model.parameters())
    if (info.kind == ParameterKind::trained)
      expect_close(std::span<const float>(gradients).subspan(info.offset, info.elements),
                   "gradient/" + info.name, kGradientTolerance);
  if (!ids) expect_close(network.input_gradient(), "input_gradient", kGradientTolerance);
}

TEST_P(PyTorch, gives_the_same_output_and_gradients) {
  check(1);
  check(2);
}

TEST(PyTorchLoss, of_squares_is_the_same_and_has_the_same_gradient) {
  train::PosixFileSystem files;
  const auto file =
      train::read_safetensors(files, TROUPE_PYTORCH_REFERENCE, train::Checksum::if_present).value();
  const auto values = [&](const std::string& name) {
    const train::TensorView* const tensor = file.find("mean_squared_error/" + name);
    return std::span(reinterpret_cast<const float*>(tensor->bytes.data()),
                     tensor->bytes.size() / sizeof(float));
  };
  const Model model = Model::build("m", {3, 5}, {Relu{}}).value();
  auto loss = make_loss(model, {.loss = Loss::mean_squared_error}).value();
  Tensor targets = Tensor::allocate(DType::f32, {4, 3, 5}).value();
  std::ranges::copy(values("targets"), targets.data<float>().begin());
  ASSERT_TRUE(loss->read(targets, 4).ok());
  std::vector<float> gradient(60);
  const LossStats stats =
      loss->compute(loss->labels().data(), 4, values("outputs").data(), gradient.data());
  const auto count = static_cast<double>(stats.count);
  EXPECT_NEAR(stats.loss_sum / count, values("loss")[0], 1e-6);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    EXPECT_NEAR(gradient[i] / count, values("gradient")[i], 1e-7);
}

INSTANTIATE_TEST_SUITE_P(Of, PyTorch, testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace troupe::kernels
