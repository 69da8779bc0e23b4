// Our own kernels against the CPU's, where both do the same operations in the same order: the bits
// are equal. (Sums that go in another order are held to the formulas by the layers' tests.)
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/internal/backend.hpp"
#include "kernels/internal/loss.hpp"
#include "kernels/models.hpp"
#include "kernels/parameters.hpp"
#include "kernels/philox.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

void fill_random(std::span<float> values, std::uint64_t stream) {
  Philox random(9, {stream});
  for (float& value : values) value = random.uniform(-3.0f, 3.0f);
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// A pass there and back.
struct Outcome {
  std::vector<float> output, gradients, input_gradient;
};

Outcome run(const ComputeDevice& device, const Model& model, std::int64_t batch) {
  const bool ids = model.input_dtype() == DType::i32;
  DeviceNetwork network =
      DeviceNetwork::create_on(device, model, batch,
                               {.choice = KernelChoice::library, .input_gradient = !ids})
          .value();
  Parameters parameters = Parameters::zeros(model).value();
  fill_random(parameters.values(), 1);
  const auto elements = static_cast<std::size_t>(batch * model.input().elements());
  if (ids) {
    std::vector<std::int32_t> values(elements);
    Philox random(4);
    for (auto& id : values)
      id = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.vocabulary())));
    network.set_ids(values);
  } else {
    std::vector<float> values(elements);
    fill_random(values, 2);
    values[1] = -0.0f;
    network.set_input(values);
  }
  EXPECT_TRUE(network.forward(parameters.values(), {11, 5, 3}).ok());
  std::vector<float> factors(network.output_size());
  fill_random(factors, 3);
  Outcome outcome;
  outcome.gradients.resize(model.flat_size());
  EXPECT_TRUE(network.backward(factors, outcome.gradients).ok());
  outcome.output = network.output();
  outcome.input_gradient = network.input_gradient();
  return outcome;
}

void expect_same(const Model& model, std::int64_t batch) {
  const Outcome expected = run(ComputeDevice(), model, batch);
  const Outcome actual = run(test_device().value(), model, batch);
  EXPECT_TRUE(same_bits(actual.output, expected.output));
  EXPECT_TRUE(same_bits(actual.input_gradient, expected.input_gradient));
  for (const ParameterInfo& info : model.parameters())
    EXPECT_TRUE(same_bits(std::span(actual.gradients).subspan(info.offset, info.elements),
                          std::span(expected.gradients).subspan(info.offset, info.elements)))
        << info.name;
}

void expect_same(Shape input, std::vector<LayerSpec> layers, std::int64_t batch = 3) {
  expect_same(Model::build("m", input, std::move(layers)).value(), batch);
}

TEST(CudaBits, of_functions_of_each_element_are_the_cpus) {
  expect_same({1001}, {Relu{}});
  expect_same({1001}, {Gelu{}});
  expect_same({1001}, {Gelu{Gelu::Form::erf}});
  expect_same({1001}, {Silu{}});
  expect_same({1001}, {Sigmoid{}});
  expect_same({1001}, {Tanh{}});
}

TEST(CudaBits, of_dropout_are_the_cpus) {
  expect_same({7, 13}, {Dropout{0.3f}}, 5);
  expect_same({2, 2}, {Tanh{}, Dropout{0.5f}, Tanh{}, Dropout{0.5f}}, 1);
}

TEST(CudaBits, of_embeddings_and_their_gradients_are_the_cpus) {
  expect_same({40}, {Embedding{"e", 5, 9}});
  expect_same({3}, {Embedding{"e", 50, 4}}, 1);
  expect_same({6}, {Embedding{"e", 11, 20}, PositionEmbedding{"p", 8}}, 4);
}

TEST(CudaBits, of_adaptive_pooling_are_the_cpus) {
  for (const auto kind : {Pooling::Kind::average, Pooling::Kind::max}) {
    expect_same({2, 7, 5}, {AdaptivePooling{kind, 3, 4}});
    expect_same({2, 2, 3}, {AdaptivePooling{kind, 3, 7}});
  }
  expect_same({3, 4, 6}, {Tanh{}, AdaptivePooling{Pooling::Kind::max, 4, 6}, Tanh{}});
}

/// A step of one sample on one feature that is 1: no product is rounded.
TEST(CudaBits, of_the_cell_of_an_lstm_are_the_cpus) {
  const Model model = Model::build("m", {1, 1}, {Lstm{.name = "l", .hidden = 37}}).value();
  const auto on = [&](const ComputeDevice& device) {
    DeviceNetwork network = DeviceNetwork::create_on(device, model, 1, {}).value();
    Parameters parameters = Parameters::zeros(model).value();
    fill_random(parameters.values(), 1);
    network.set_input(std::vector<float>{1.0f});
    EXPECT_TRUE(network.forward(parameters.values()).ok());
    std::vector<float> given(37), gradients(model.flat_size());
    fill_random(given, 3);
    EXPECT_TRUE(network.backward(given, gradients).ok());
    return std::pair(network.output(), gradients);
  };
  EXPECT_EQ(on(test_device().value()), on(ComputeDevice()));
}

/// What the loss is computed on.
struct LossCase {
  std::int64_t classes;
  LossOptions options = {};
  bool gradient = true;
  float special = 1.0f;  ///< a logit
};

struct LossOutcome {
  LossStats stats;
  std::vector<float> gradient;
};

LossOutcome loss(const ComputeDevice& device, const LossCase& test) {
  constexpr std::size_t kRows = 33;
  const auto logits_count = kRows * static_cast<std::size_t>(test.classes);
  std::vector<float> logits(logits_count);
  fill_random(logits, 5);
  logits[static_cast<std::size_t>(test.classes) + 2] = test.special;
  logits[0] = logits[3] = 9.0f;  // equals
  std::vector<std::int32_t> labels(kRows);
  Philox random(6);
  for (auto& label : labels)
    label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(test.classes)));
  labels[0] = 3;
  labels[7] = test.options.ignored_label.value_or(labels[7]);

  Backend& backend = device.backend();
  const auto stream = backend.make_stream().value();
  const std::size_t bytes = logits_count * sizeof(float);
  Buffer there = device.allocate(bytes).value(), gradient = device.allocate(bytes).value();
  Tensor given = Tensor::allocate(DType::i32, {kRows}).value();
  std::ranges::copy(labels, given.data<std::int32_t>().begin());
  const auto function = make_loss(Model::build("m", {test.classes}, {Relu{}}).value(),
                                  {.label_smoothing = test.options.label_smoothing,
                                   .ignored_label = test.options.ignored_label})
                            .value();
  EXPECT_TRUE(function->read(given, kRows).ok());
  Buffer labels_there = device.allocate(function->labels().size()).value();
  Buffer stats = device.allocate(sizeof(LossStats)).value();
  Buffer scale = device.allocate(sizeof(float)).value();
  constexpr float kScale = 8.0f;
  const auto at = [](Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); };
  EXPECT_TRUE(stream->copy(there.data(), logits.data(), bytes).ok());
  EXPECT_TRUE(
      stream->copy(labels_there.data(), function->labels().data(), labels_there.size()).ok());
  EXPECT_TRUE(stream->copy(scale.data(), &kScale, sizeof kScale).ok());
  EXPECT_TRUE(backend
                  .compute_loss(*stream, {*function, labels_there.data(), kRows, at(there),
                                          test.gradient ? at(gradient) : nullptr, at(scale),
                                          reinterpret_cast<LossStats*>(stats.data())})
                  .ok());
  LossOutcome outcome;
  EXPECT_TRUE(stream->copy(&outcome.stats, stats.data(), sizeof(LossStats)).ok());
  if (test.gradient) {
    outcome.gradient.resize(logits_count);
    EXPECT_TRUE(stream->copy(outcome.gradient.data(), gradient.data(), bytes).ok());
  }
  EXPECT_TRUE(stream->synchronize().ok());
  return outcome;
}

TEST(CudaBits, of_the_loss_of_few_classes_are_the_cpus) {
  for (const LossCase& test :
       {LossCase{10}, LossCase{10, {.label_smoothing = 0.1f}}, LossCase{10, {.ignored_label = -1}},
        LossCase{100, {.label_smoothing = 0.1f, .ignored_label = 3}}, LossCase{10, {}, false}}) {
    const LossOutcome expected = loss(ComputeDevice(), test);
    const LossOutcome actual = loss(test_device().value(), test);
    EXPECT_EQ(actual.stats.loss_sum, expected.stats.loss_sum);
    EXPECT_EQ(actual.stats.correct, expected.stats.correct);
    EXPECT_EQ(actual.stats.count, expected.stats.count);
    EXPECT_TRUE(same_bits(actual.gradient, expected.gradient));
  }
}

TEST(CudaLoss, of_many_classes_is_the_cpus_up_to_rounding) {
  for (const LossCase& test :
       {LossCase{130}, LossCase{1000, {.label_smoothing = 0.1f, .ignored_label = 3}},
        LossCase{777, {}, false}}) {
    const LossOutcome expected = loss(ComputeDevice(), test);
    const LossOutcome actual = loss(test_device().value(), test);
    EXPECT_NEAR(actual.stats.loss_sum, expected.stats.loss_sum, 1e-6 * expected.stats.loss_sum);
    EXPECT_EQ(actual.stats.correct, expected.stats.correct);
    EXPECT_EQ(actual.stats.count, expected.stats.count);
    for (std::size_t i = 0; i < expected.gradient.size(); ++i)
      ASSERT_NEAR(actual.gradient[i], expected.gradient[i], 1e-6f) << i;
  }
}

TEST(CudaLoss, of_a_logit_that_is_no_number_is_none) {
  for (const std::int64_t classes : {std::int64_t{10}, std::int64_t{200}}) {
    const LossCase test{classes, {}, true, std::numeric_limits<float>::quiet_NaN()};
    const LossOutcome actual = loss(test_device().value(), test);
    EXPECT_TRUE(actual.stats.loss_sum != actual.stats.loss_sum);
    EXPECT_EQ(actual.stats.correct, loss(ComputeDevice(), test).stats.correct);
  }
}

}  // namespace
}  // namespace troupe::kernels
