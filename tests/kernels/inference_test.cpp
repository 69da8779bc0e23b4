// What only passes of inference do: several layers in one kernel, and memory that is written over
// as soon as nothing reads it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/internal/network.hpp"
#include "kernels/model_builder.hpp"
#include "kernels/models.hpp"
#include "kernels/parameters.hpp"
#include "kernels/philox.hpp"

namespace troupe::kernels {
namespace {

using Value = ModelBuilder::Value;

/// Of the largest output: what a batch norm that is folded into the convolution's weight may differ
/// from one that follows it. Either rounds each product and sum once more than the other.
constexpr float kFoldingTolerance = 1e-5f;

/// Puts a model together with each layer given its own kernel, or not: a value under another name
/// for the same shape ends a run of layers that become one.
class Layers {
public:
  Layers(const Shape& input, bool fused) : model_("m", input), fused_(fused) {}
  Value input() { return model_.input(); }
  Value add(const LayerSpec& layer, Value from) { return ended(model_.add(layer, from)); }
  Value sum(Value a, Value b) { return ended(model_.add(Add{}, a, b)); }
  Model build() { return model_.build().value(); }

private:
  Value ended(Value value) {
    return fused_ ? value : model_.add(Reshape{model_.shape(value)}, value);
  }
  ModelBuilder model_;
  bool fused_;
};

void fill(std::span<float> values, std::uint64_t stream) {
  Philox random(5, {stream});
  for (float& value : values) value = random.uniform(-1.0f, 1.5f);
}

/// Weights, and statistics as of a batch norm that has seen data.
Parameters parameters_of(const Model& model) {
  Parameters parameters = Parameters::initialized(model, 1).value();
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    fill(parameters.values(i), i);
    if (model.parameters()[i].name.ends_with("running_var"))
      for (float& variance : parameters.values(i)) variance = 0.2f + std::abs(variance);
  }
  return parameters;
}

struct Given {
  std::vector<float> output;
  std::size_t kernels = 0;
};

Given predict(const Model& model, std::int64_t batch, NetworkOptions options = {}) {
  options.mode = Mode::inference;
  Network network = Network::create(model, batch, options).value();
  const Parameters parameters = parameters_of(model);
  Given given;
  given.kernels = network.kernels();
  // The second pass finds in memory what the first has left.
  for (int pass = 0; pass < 2; ++pass) {
    fill(network.input(), 99);
    EXPECT_TRUE(network.forward(parameters.values().data()).ok());
  }
  given.output = {network.output().begin(), network.output().end()};
  return given;
}

void expect_close(const Given& fused, const Given& apart, const std::string& what) {
  ASSERT_EQ(fused.output.size(), apart.output.size()) << what;
  float largest = 0.0f;
  for (const float value : apart.output) largest = std::max(largest, std::abs(value));
  ASSERT_GT(largest, 0.0f) << what;
  for (std::size_t i = 0; i < fused.output.size(); ++i)
    ASSERT_NEAR(fused.output[i], apart.output[i], kFoldingTolerance * largest) << what << " " << i;
}

struct Case {
  const char* name;
  Convolution convolution;
  bool norm, relu;
};

TEST(Inference, folds_a_batch_norm_and_the_relu_after_it_into_the_convolution) {
  const Convolution plain{.name = "c", .out_channels = 40, .kernel = 3, .padding = 1};
  Convolution strided = plain, grouped = plain, depthwise = plain, without_bias = plain;
  strided.kernel = 5, strided.stride = 2, strided.dilation = 2;
  grouped.groups = 4;
  depthwise.groups = 20;
  without_bias.bias = false, without_bias.kernel = 1, without_bias.padding = 0;
  const std::vector<Case> cases = {{"norm and relu", plain, true, true},
                                   {"norm", plain, true, false},
                                   {"relu", plain, false, true},
                                   {"strided", strided, true, true},
                                   {"without a bias", without_bias, true, true},
                                   {"relu without a bias", without_bias, false, true},
                                   {"in groups", grouped, true, true},
                                   {"depthwise", depthwise, true, true}};
  for (const Case& c : cases) {
    const auto make = [&](bool fused) {
      Layers layers({20, 13, 11}, fused);
      Value x = layers.add(c.convolution, layers.input());
      if (c.norm) x = layers.add(BatchNorm{"n"}, x);
      if (c.relu) layers.add(Relu{}, x);
      return layers.build();
    };
    for (const int threads : {1, 2}) {
      const Given fused = predict(make(true), 3, {.threads = threads});
      expect_close(fused, predict(make(false), 3, {.threads = threads}), c.name);
      EXPECT_LE(fused.kernels, 3u) << c.name << ": it, and two that bring it its input and output";
    }
  }
}

/// A residual block: the value that is added comes before the convolution's run or, with a
/// convolution of its own, is the run's.
Model block(bool fused, bool downsample, bool read_again) {
  Layers layers({20, 9, 7}, fused);
  const auto part = [&](const std::string& name, Value from) {
    return layers.add(
        BatchNorm{name + ".bn"},
        layers.add(
            Convolution{.name = name, .out_channels = 32, .kernel = 3, .padding = 1, .bias = false},
            from));
  };
  const Value x = layers.add(Relu{}, part("first", layers.input()));
  const Value y = part("second", layers.add(Relu{}, part("middle", x)));
  Value z = layers.add(Relu{}, layers.sum(y, downsample ? part("down", x) : x));
  if (read_again) z = layers.sum(z, x);
  return layers.build();
}

TEST(Inference, adds_a_residual_blocks_two_ways_within_the_last_convolution) {
  for (const bool downsample : {false, true})
    for (const bool read_again : {false, true}) {
      const std::string what =
          std::string(downsample ? "downsampled" : "identity") + (read_again ? ", read again" : "");
      const Given fused = predict(block(true, downsample, read_again), 2);
      expect_close(fused, predict(block(false, downsample, read_again), 2), what);
      const std::size_t convolutions = downsample ? 4 : 3;
      EXPECT_LE(fused.kernels, convolutions + (read_again ? 3u : 2u)) << what;
    }
}

TEST(Inference, of_resnets_runs_a_kernel_for_each_convolution) {
  const ModelConfig config{.input = {3, 32, 32}, .classes = 10, .small_images = true};
  const Model model = make_model("resnet50", config).value();
  const auto convolutions = std::ranges::count_if(model.layers(), [](const Layer& layer) {
    return std::holds_alternative<Convolution>(layer.spec);
  });
  const Network network = Network::create(model, 2, {.mode = Mode::inference}).value();
  // Besides them what brings the input in order, the mean of each channel and the last layer.
  EXPECT_LE(network.kernels(), static_cast<std::size_t>(convolutions) + 6);
}

TEST(Inference, does_a_linear_layers_gelu_with_its_bias_and_gives_the_same_bits) {
  for (const Gelu::Form form : {Gelu::Form::tanh, Gelu::Form::erf})
    for (const bool bias : {true, false}) {
      const auto make = [&](bool fused) {
        Layers layers({37, 24}, fused);
        layers.add(Gelu{form}, layers.add(Linear{.name = "l", .out_features = 50, .bias = bias},
                                          layers.input()));
        return layers.build();
      };
      const Given apart = predict(make(false), 3);
      for (const int threads : {1, 2, 3}) {
        const Given fused = predict(make(true), 3, {.threads = threads});
        EXPECT_EQ(fused.kernels, 1u);
        EXPECT_EQ(fused.output, apart.output) << threads;
      }
    }
}

TEST(Inference, by_the_portable_kernels_gives_the_bits_of_training) {
  const Model model = Model::build("m", {3, 12, 12},
                                   {Convolution{.name = "c", .out_channels = 5, .kernel = 3},
                                    Relu{}, Pooling{}, Flatten{}, Linear{"l", 7}, Relu{}})
                          .value();
  const Parameters parameters = parameters_of(model);
  Network training =
      Network::create(model, 3, {.choice = KernelChoice::portable, .mode = Mode::training}).value();
  fill(training.input(), 99);
  ASSERT_TRUE(training.forward(parameters.values().data()).ok());
  const std::vector<float> expected(training.output().begin(), training.output().end());
  EXPECT_EQ(predict(model, 3, {.choice = KernelChoice::portable}).output, expected);
}

TEST(Inference, writes_over_no_value_that_is_read_later_under_another_name) {
  ModelBuilder builder("m", Shape{2, 3});
  const Value x = builder.add(Tanh{}, builder.input());
  const Value name = builder.add(Reshape{Shape{2, 3}}, x);
  const Value y = builder.add(Sigmoid{}, name);  // in place, were x not read again
  builder.add(Add{}, y, x);
  const Model model = builder.build().value();
  const Given given = predict(model, 1);
  std::vector<float> input(6);
  fill(input, 99);
  for (std::size_t i = 0; i < input.size(); ++i) {
    const float expected = std::tanh(input[i]);
    EXPECT_NEAR(given.output[i], expected + 1.0f / (1.0f + std::exp(-expected)), 1e-5f) << i;
  }
}

}  // namespace
}  // namespace troupe::kernels
