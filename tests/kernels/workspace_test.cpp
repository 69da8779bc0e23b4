#include "kernels/workspace.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/models.hpp"
#include "kernels/philox.hpp"
#include "tests/kernels/gradient_check.hpp"

namespace troupe::kernels {
namespace {

using testing::HasSubstr;

struct Samples {
  Tensor images, labels;
};

Samples random_samples(std::int64_t count, std::uint64_t seed) {
  Samples samples{Tensor::allocate(DType::u8, {count, 1, 28, 28}).value(),
                  Tensor::allocate(DType::u8, {count}).value()};
  Philox random(seed);
  for (auto& pixel : samples.images.data<std::uint8_t>())
    pixel = static_cast<std::uint8_t>(random.below(256));
  for (auto& label : samples.labels.data<std::uint8_t>())
    label = static_cast<std::uint8_t>(random.below(10));
  return samples;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class WorkspaceTest : public testing::Test {
protected:
  Model model = make_model("lenet5").value();
  Parameters parameters = Parameters::initialized(model, 7).value();
  std::vector<float> gradients = std::vector<float>(model.flat_size());

  Workspace make(WorkspaceOptions options = {}) {
    return Workspace::create(model, options).value();
  }
  std::vector<float> gradients_of(Workspace& workspace, const Samples& samples) {
    std::vector<float> result(model.flat_size());
    EXPECT_TRUE(
        workspace.forward_backward(parameters, samples.images, samples.labels, result).ok());
    return result;
  }
};

TEST_F(WorkspaceTest, gives_the_loss_of_an_untrained_model) {
  Workspace workspace = make();
  const Samples samples = random_samples(50, 1);
  const LossStats stats =
      workspace.forward_backward(parameters, samples.images, samples.labels, gradients).value();
  EXPECT_EQ(stats.count, 50);
  EXPECT_NEAR(stats.loss_sum / 50, std::log(10.0), 0.3);
}

TEST_F(WorkspaceTest, evaluates_to_the_same_loss_as_it_trains_on) {
  Workspace workspace = make();
  const Samples samples = random_samples(100, 2);
  const LossStats trained =
      workspace.forward_backward(parameters, samples.images, samples.labels, gradients).value();
  const LossStats evaluated =
      workspace.evaluate(parameters, samples.images, samples.labels).value();
  EXPECT_EQ(trained.loss_sum, evaluated.loss_sum);
  EXPECT_EQ(trained.correct, evaluated.correct);
}

TEST_F(WorkspaceTest, evaluates_any_number_of_samples) {
  Workspace workspace = make();
  const Samples samples = random_samples(300, 3);
  const LossStats all = workspace.evaluate(parameters, samples.images, samples.labels).value();
  LossStats parts;
  for (auto [begin, end] : {std::pair{0, 250}, {250, 300}})
    parts += workspace
                 .evaluate(parameters, samples.images.rows(begin, end).value(),
                           samples.labels.rows(begin, end).value())
                 .value();
  EXPECT_EQ(all.count, 300);
  EXPECT_EQ(all.correct, parts.correct);
  EXPECT_NEAR(all.loss_sum, parts.loss_sum, 1e-3);
}

TEST_F(WorkspaceTest, takes_samples_of_any_strides) {
  Workspace workspace = make();
  const Samples all = random_samples(6, 3);
  const Samples strided{all.images.slice(0, 1, 6, 2).value(), all.labels.slice(0, 1, 6, 2).value()};
  ASSERT_FALSE(strided.images.is_contiguous());
  const Samples plain{strided.images.contiguous().value(), strided.labels.contiguous().value()};
  EXPECT_TRUE(same_bits(gradients_of(workspace, strided), gradients_of(workspace, plain)));
  EXPECT_EQ(workspace.evaluate(parameters, strided.images, strided.labels).value().loss_sum,
            workspace.evaluate(parameters, plain.images, plain.labels).value().loss_sum);
  const Tensor turned = plain.images.transposed(2, 3).value().contiguous().value();
  EXPECT_TRUE(same_bits(
      workspace.predict(parameters, turned.transposed(2, 3).value()).value().data<float>(),
      workspace.predict(parameters, plain.images).value().data<float>()));
}

TEST_F(WorkspaceTest, gradient_is_of_the_sum_over_samples) {
  Workspace workspace = make();
  const Samples samples = random_samples(2, 4);
  const auto both = gradients_of(workspace, samples);
  std::vector<float> sum(model.flat_size());
  for (std::int64_t i : {0, 1}) {
    const auto one = gradients_of(
        workspace, {samples.images.rows(i, i + 1).value(), samples.labels.rows(i, i + 1).value()});
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += one[j];
  }
  for (std::size_t j = 0; j < sum.size(); ++j) ASSERT_NEAR(both[j], sum[j], 1e-5);
}

TEST_F(WorkspaceTest, gradient_is_the_central_difference_of_the_loss) {
  Workspace workspace = make();
  const Samples samples = random_samples(4, 5);
  const auto gradient = gradients_of(workspace, samples);
  constexpr float kStep = 1e-2f;
  for (const ParameterInfo& info : model.parameters()) {
    const std::size_t at = info.offset + info.elements / 2;
    const float before = parameters.values()[at];
    const auto loss_at = [&](float value) {
      parameters.values()[at] = value;
      return workspace.evaluate(parameters, samples.images, samples.labels).value().loss_sum;
    };
    const double difference =
        (loss_at(before + kStep) - loss_at(before - kStep)) / (2.0 * double{kStep});
    parameters.values()[at] = before;
    EXPECT_NEAR(gradient[at], difference, 0.02 * std::max(1.0, std::abs(difference))) << info.name;
  }
}

TEST_F(WorkspaceTest, zeroes_what_lies_between_the_parameters_gradients) {
  Workspace workspace = make();
  const Samples samples = random_samples(3, 6);
  std::ranges::fill(gradients, std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(
      workspace.forward_backward(parameters, samples.images, samples.labels, gradients).ok());
  for (float value : gradients) ASSERT_FALSE(std::isnan(value));
  const ParameterInfo& bias = model.parameters()[1];
  EXPECT_EQ(gradients[bias.offset + bias.elements], 0.0f);
}

TEST_F(WorkspaceTest, says_which_gradients_are_ready_from_the_last_to_the_first) {
  Workspace workspace = make();
  const Samples samples = random_samples(8, 7);
  const auto expected = gradients_of(workspace, samples);
  std::vector<std::string> names;
  const auto ready = [&](const ParameterInfo& parameter) {
    names.push_back(parameter.name);
    const std::span<const float> tail = gradients;
    EXPECT_TRUE(
        same_bits(tail.subspan(parameter.offset), std::span(expected).subspan(parameter.offset)))
        << parameter.name;
  };
  ASSERT_TRUE(
      workspace
          .forward_backward(parameters, samples.images, samples.labels, gradients, {.ready = ready})
          .ok());
  EXPECT_THAT(names, testing::ElementsAre("fc3.bias", "fc3.weight", "fc2.bias", "fc2.weight",
                                          "fc1.bias", "fc1.weight", "conv2.bias", "conv2.weight",
                                          "conv1.bias", "conv1.weight"));
}

TEST_F(WorkspaceTest, takes_bytes_and_their_normalised_floats_alike) {
  Workspace workspace = make();
  const Samples samples = random_samples(5, 8);
  Tensor floats = Tensor::allocate(DType::f32, {5, 28, 28}).value();
  std::ranges::transform(
      samples.images.data<std::uint8_t>(), floats.data<float>().begin(),
      [](std::uint8_t x) { return (static_cast<float>(x) / 255.0f - 0.1307f) / 0.3081f; });
  EXPECT_TRUE(same_bits(gradients_of(workspace, samples),
                        gradients_of(workspace, {floats, samples.labels})));
}

TEST_F(WorkspaceTest, predicts_logits_whose_greatest_are_counted_as_correct) {
  Workspace workspace = make();
  const Samples samples = random_samples(140, 9);
  const Tensor logits = workspace.predict(parameters, samples.images).value();
  ASSERT_EQ(logits.shape(), (Shape{140, 10}));
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < 140; ++i) {
    const auto row = logits.data<float>().subspan(i * 10, 10);
    correct +=
        std::ranges::max_element(row) - row.begin() == samples.labels.data<std::uint8_t>()[i];
  }
  EXPECT_EQ(workspace.evaluate(parameters, samples.images, samples.labels).value().correct,
            correct);
}

/// The same bits whatever ran before and beside it.
class Determinism : public WorkspaceTest, public testing::WithParamInterface<KernelChoice> {
protected:
  void expect_same_bits(int threads) {
    WorkspaceOptions options;
    options.kernels = GetParam();
    options.threads = threads;
    const Samples samples = random_samples(20, 10);
    Workspace first = make(options);
    const auto expected = gradients_of(first, samples);
    // After another batch size and other samples.
    gradients_of(first, random_samples(33, 11));
    EXPECT_TRUE(same_bits(expected, gradients_of(first, samples)));

    std::vector<std::thread> running;
    std::vector<int> same(4);
    for (std::size_t i = 0; i < same.size(); ++i)
      running.emplace_back([&, i] {
        Workspace own = make(options);
        for (int n = 0; n < 3; ++n) same[i] += same_bits(expected, gradients_of(own, samples));
      });
    for (std::thread& thread : running) thread.join();
    EXPECT_THAT(same, testing::Each(3));

    // On a thread that did not make it.
    std::thread([&] { EXPECT_TRUE(same_bits(expected, gradients_of(first, samples))); }).join();
  }
};

TEST_P(Determinism, of_one_thread_each) {
  expect_same_bits(1);
}
TEST_P(Determinism, of_two_threads_each) {
  expect_same_bits(2);
}

INSTANTIATE_TEST_SUITE_P(By, Determinism,
                         testing::Values(KernelChoice::automatic, KernelChoice::portable,
                                         KernelChoice::library));

TEST_F(WorkspaceTest, refuses_images_of_another_shape_and_names_both) {
  Workspace workspace = make();
  const Tensor images = Tensor::zeros(DType::u8, {2, 32, 32}).value();
  const Tensor labels = Tensor::zeros(DType::u8, {2}).value();
  const auto result = workspace.forward_backward(parameters, images, labels, gradients);
  ASSERT_EQ(result.code(), Code::shape_mismatch);
  EXPECT_THAT(result.error().message,
              testing::AllOf(HasSubstr("[1, 28, 28]"), HasSubstr("u8 [2, 32, 32]")));
}

TEST_F(WorkspaceTest, refuses_labels_of_another_count) {
  Workspace workspace = make();
  const Samples samples = random_samples(4, 12);
  const auto result =
      workspace.evaluate(parameters, samples.images, Tensor::zeros(DType::u8, {3}).value());
  ASSERT_EQ(result.code(), Code::shape_mismatch);
  EXPECT_THAT(result.error().message, HasSubstr("u8 [3]"));
}

TEST_F(WorkspaceTest, refuses_a_label_outside_the_classes_and_says_which) {
  Workspace workspace = make();
  Samples samples = random_samples(4, 13);
  samples.labels.data<std::uint8_t>()[2] = 10;
  const auto result =
      workspace.forward_backward(parameters, samples.images, samples.labels, gradients);
  ASSERT_EQ(result.code(), Code::invalid_argument);
  EXPECT_THAT(result.error().message, HasSubstr("label 2 of the batch is 10"));
}

TEST_F(WorkspaceTest, refuses_an_empty_batch) {
  Workspace workspace = make();
  EXPECT_EQ(workspace
                .evaluate(parameters, Tensor::zeros(DType::u8, {0, 28, 28}).value(),
                          Tensor::zeros(DType::u8, {0}).value())
                .code(),
            Code::shape_mismatch);
}

TEST_F(WorkspaceTest, refuses_gradients_of_another_length_and_another_models_parameters) {
  Workspace workspace = make();
  const Samples samples = random_samples(4, 14);
  gradients.pop_back();
  EXPECT_EQ(
      workspace.forward_backward(parameters, samples.images, samples.labels, gradients).code(),
      Code::shape_mismatch);
  const auto other = Parameters::initialized(make_model("mlp").value(), 1).value();
  const auto result = workspace.evaluate(other, samples.images, samples.labels);
  ASSERT_EQ(result.code(), Code::shape_mismatch);
  EXPECT_THAT(result.error().message, testing::AllOf(HasSubstr("mlp"), HasSubstr("lenet5")));
}

TEST_F(WorkspaceTest, refuses_bad_options_by_name) {
  const auto error_of = [&](WorkspaceOptions options) {
    auto result = Workspace::create(model, options);
    return result.ok() ? std::string("none") : result.error().message;
  };
  EXPECT_THAT(error_of({.threads = 0}), HasSubstr("threads is 0"));
  EXPECT_THAT(error_of({.input_deviation = {0.0f}}), HasSubstr("input_deviation"));
  EXPECT_THAT(error_of({.input_mean = {std::numeric_limits<float>::infinity()}}),
              HasSubstr("input_mean"));
}

TEST_F(WorkspaceTest, refuses_means_that_are_neither_one_nor_one_a_channel) {
  const auto result = Workspace::create(model, {.input_mean = {0.1f, 0.2f}});
  ASSERT_EQ(result.code(), Code::invalid_argument);
  EXPECT_THAT(result.error().message, HasSubstr("input_mean has 2 numbers"));
  EXPECT_EQ(Workspace::create(model, {.input_deviation = {}}).code(), Code::invalid_argument);
}

TEST(WorkspaceOfColourImages, takes_each_channel_with_its_own_mean_and_deviation) {
  const Model model = make_model("mlp", {.input = {2, 2, 3}, .classes = 3, .hidden = {4}}).value();
  const auto parameters = Parameters::initialized(model, 1).value();
  auto bytes = Tensor::allocate(DType::u8, {2, 2, 2, 3}).value();
  auto floats = Tensor::allocate(DType::f32, {2, 2, 2, 3}).value();
  const float mean[] = {0.25f, 0.75f}, deviation[] = {0.5f, 2.0f};
  for (std::size_t i = 0; i < bytes.elements(); ++i) {
    const auto value = static_cast<std::uint8_t>(i * 10);
    const std::size_t channel = i / 6 % 2;
    bytes.data<std::uint8_t>()[i] = value;
    floats.data<float>()[i] =
        (static_cast<float>(value) / 255.0f - mean[channel]) / deviation[channel];
  }
  auto workspace =
      Workspace::create(model, {.input_mean = {0.25f, 0.75f}, .input_deviation = {0.5f, 2.0f}})
          .value();
  const auto of_bytes = workspace.predict(parameters, bytes).value();
  const auto of_floats = workspace.predict(parameters, floats).value();
  EXPECT_TRUE(same_bits(of_bytes.data<float>(), of_floats.data<float>()));
}

TEST_F(WorkspaceTest, can_be_used_again_after_an_error) {
  Workspace workspace = make();
  const Samples samples = random_samples(4, 15);
  EXPECT_FALSE(workspace.evaluate(parameters, samples.labels, samples.labels).ok());
  EXPECT_TRUE(workspace.evaluate(parameters, samples.images, samples.labels).ok());
}

TEST(WorkspaceOfAModelOfImages, is_refused_as_there_are_no_classes) {
  const Model model = Model::build("images", {1, 4, 4}, {Relu{}}).value();
  const auto result = Workspace::create(model);
  ASSERT_EQ(result.code(), Code::shape_mismatch);
  EXPECT_THAT(result.error().message, HasSubstr("[1, 4, 4]"));
}

}  // namespace
}  // namespace troupe::kernels
