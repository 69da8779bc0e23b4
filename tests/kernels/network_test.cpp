#include "kernels/internal/network.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/internal/arena.hpp"
#include "kernels/models.hpp"
#include "kernels/parameters.hpp"
#include "kernels/philox.hpp"
#include "kernels/statistics.hpp"

namespace troupe::kernels {
namespace {

void fill(std::span<float> values, std::uint64_t stream) {
  Philox random(3, {stream});
  for (float& value : values) value = random.uniform(-1.0f, 3.0f);
}

Network make(const Model& model, std::int64_t batch, Mode mode = Mode::training) {
  return Network::create(model, batch, {.mode = mode}).value();
}

TEST(ArenaPlan, gives_blocks_the_same_place_only_at_different_times) {
  ArenaPlan plan;
  const auto early = plan.add(100, 0);
  const auto late = plan.add(100, 5);
  const auto always = plan.add(64, 0);
  plan.use(early, 4);
  plan.use(late, 9);
  plan.use(always, 9);
  plan.place();
  EXPECT_EQ(plan.offset(early), plan.offset(late));
  EXPECT_GE(plan.offset(always), 128u);
  EXPECT_EQ(plan.size(), 192u);
}

TEST(ArenaPlan, fills_the_gaps_that_fit) {
  ArenaPlan plan;
  const auto first = plan.add(256, 0);
  const auto second = plan.add(192, 0);
  const auto small = plan.add(64, 1);
  plan.use(second, 2);
  plan.use(small, 2);
  plan.place();
  EXPECT_EQ(plan.offset(small), plan.offset(first));
  EXPECT_EQ(plan.size(), 448u);
}

TEST(Network, leaves_its_output_where_the_caller_wants_it) {
  const Model small =
      Model::build("small", {40}, {Linear{"a", 30}, Gelu{}, Linear{"b", 7}}).value();
  const Model in_place = Model::build("in place", {40}, {Linear{"a", 30}, Relu{}}).value();
  const Model name = Model::build("a name of the input", {2, 3, 4}, {Flatten{}}).value();
  const Model convolutions =
      make_model("resnet18", {.input = {3, 32, 32}, .small_images = true, .width = 16}).value();
  for (const Model& model : {small, in_place, name, convolutions}) {
    const auto parameters = Parameters::initialized(model, 1).value();
    Network network = make(model, 3, Mode::inference);
    const auto fill_input = [&] { fill(network.input(), 5); };
    fill_input();
    ASSERT_TRUE(network.forward(parameters.values().data()).ok());
    const std::vector<float> expected(network.output().begin(), network.output().end());
    std::vector<float> output(expected.size() + 2, -77.0f);
    fill_input();
    ASSERT_TRUE(network.forward_to(parameters.values().data(), output.data() + 1).ok());
    EXPECT_EQ(std::vector<float>(output.begin() + 1, output.end() - 1), expected) << model.name();
    EXPECT_EQ(output.front(), -77.0f);
    EXPECT_EQ(output.back(), -77.0f);
    fill_input();
    ASSERT_TRUE(network.forward(parameters.values().data()).ok());
    EXPECT_TRUE(std::ranges::equal(network.output(), expected)) << "and later where it was";
  }
}

TEST(Network, of_inference_takes_the_memory_of_its_two_largest_neighbours) {
  const Model model = make_model("resnet18", {.input = {3, 32, 32}, .small_images = true}).value();
  const Network training = make(model, 2), inference = make(model, 2, Mode::inference);
  const std::size_t largest = 2 * 64 * 32 * 32 * sizeof(float);
  EXPECT_LE(inference.activation_bytes(), 4 * largest);
  EXPECT_LT(2 * inference.activation_bytes(), training.activation_bytes());
}

TEST(Activations, and_adaptive_pooling_give_the_same_bits_by_any_number_of_threads) {
  const std::vector<LayerSpec> layers = {
      Relu{}, Gelu{}, Silu{}, Sigmoid{}, Tanh{}, AdaptivePooling{.height = 5, .width = 6}};
  for (const LayerSpec& layer : layers) {
    const Model model = Model::build("m", {7, 59, 61}, {layer}).value();
    std::vector<float> output, gradient;
    for (const int threads : {1, 2, 3}) {
      Network network =
          Network::create(model, 3, {.threads = threads, .input_gradient = true}).value();
      fill(network.input(), 1);
      ASSERT_TRUE(network.forward(nullptr).ok());
      const std::vector<float> given(network.output().begin(), network.output().end());
      fill(network.output_gradient(), 2);
      ASSERT_TRUE(network.backward(nullptr, nullptr, {}).ok());
      const std::vector<float> back(network.input_gradient().begin(),
                                    network.input_gradient().end());
      if (threads == 1) {
        output = given;
        gradient = back;
      }
      EXPECT_EQ(given, output) << describe(layer) << " " << threads;
      EXPECT_EQ(back, gradient) << describe(layer) << " " << threads;
    }
  }
}

TEST(PortableKernels, give_the_same_bits_with_any_number_of_threads) {
  const std::vector<Model> models = {
      make_model("lenet5").value(),
      // Alone, strided, padded, windows that leave an edge, more channels than threads and fewer.
      Model::build("m", {3, 11, 13},
                   {Convolution{"a", 5, 3, /*stride=*/2, /*padding=*/1}, Relu{},
                    Convolution{"b", 1, 3, 1, 1}, Relu{}, Pooling{Pooling::Kind::max, 2, 2},
                    Flatten{}, Linear{"c", 45}, Relu{}, Linear{"d", 3}})
          .value(),
      Model::build(
          "m", {2, 17, 9},
          {Convolution{"a", 7, 2, /*stride=*/2, 0}, Relu{}, Pooling{Pooling::Kind::max, 3, 3},
           Pooling{Pooling::Kind::average, 2, 1, 1}, Flatten{}, Linear{"c", 33}})
          .value()};
  for (const Model& model : models)
    for (const std::int64_t batch : {3, 8, 30}) {
      const Parameters parameters = Parameters::initialized(model, 2).value();
      std::vector<float> output, gradient, weights;
      for (const int threads : {1, 2, 3, 7}) {
        SCOPED_TRACE(testing::Message()
                     << to_string(model.input()) << " " << batch << " " << threads);
        Network network =
            Network::create(
                model, batch,
                {.choice = KernelChoice::portable, .threads = threads, .input_gradient = true})
                .value();
        ASSERT_FALSE(network.uses_library());
        std::vector<float> given, back, sums(model.flat_size());
        for (int pass = 0; pass < 2; ++pass) {  // nothing is left from the one before
          fill(network.input(), 1);
          ASSERT_TRUE(network.forward(parameters.values().data()).ok());
          given.assign(network.output().begin(), network.output().end());
          fill(network.output_gradient(), 2);
          ASSERT_TRUE(network.backward(parameters.values().data(), sums.data(), {}).ok());
          back.assign(network.input_gradient().begin(), network.input_gradient().end());
        }
        if (threads == 1) {
          output = given;
          gradient = back;
          weights = sums;
        }
        EXPECT_EQ(given, output);
        EXPECT_EQ(back, gradient);
        EXPECT_EQ(sums, weights);
      }
    }
}

TEST(BatchNorm, adds_its_batchs_mean_and_unbiased_variance_to_the_statistics) {
  const Model model = Model::build("m", {2, 2, 3}, {BatchNorm{"b"}}).value();
  Network network = make(model, 4);
  fill(network.input(), 1);
  const std::vector<float> input(network.input().begin(), network.input().end());
  Parameters parameters = Parameters::initialized(model, 1).value();
  ASSERT_TRUE(network.forward(parameters.values().data()).ok());
  std::ranges::fill(network.output_gradient(), 1.0f);
  std::vector<float> gradients(model.flat_size());
  std::vector<std::string> order;
  ASSERT_TRUE(network
                  .backward(parameters.values().data(), gradients.data(),
                            [&](const ParameterInfo& info) {
                              order.push_back(info.name);
                              return Status();
                            })
                  .ok());
  EXPECT_EQ(order,
            (std::vector<std::string>{"b.running_var", "b.running_mean", "b.bias", "b.weight"}));
  // Two ranks of this batch, and the same in two runs that cut a statistic apart.
  std::vector<float> sums = gradients;
  for (float& sum : sums) sum += sum;
  Parameters in_runs = parameters.clone().value();
  const std::span<const float> all(sums);
  const std::size_t cut = model.parameters()[2].offset + 1;
  update_statistics(model, 0, all, 1.0f / 8, parameters.values());
  update_statistics(model, 0, all.first(cut), 1.0f / 8, in_runs.values());
  update_statistics(model, cut, all.subspan(cut), 1.0f / 8, in_runs.values());
  EXPECT_TRUE(std::ranges::equal(parameters.values(), in_runs.values()));
  EXPECT_EQ(parameters.values(0)[0], 1.0f) << "what is trained stays";
  for (std::size_t c = 0; c < 2; ++c) {
    double sum = 0.0, squares = 0.0;
    for (std::size_t n = 0; n < 4; ++n)
      for (std::size_t i = 0; i < 6; ++i) sum += static_cast<double>(input[(n * 2 + c) * 6 + i]);
    const double mean = sum / 24;
    for (std::size_t n = 0; n < 4; ++n)
      for (std::size_t i = 0; i < 6; ++i)
        squares += std::pow(static_cast<double>(input[(n * 2 + c) * 6 + i]) - mean, 2.0);
    EXPECT_NEAR(static_cast<double>(parameters.values(2)[c]), 0.1 * mean, 1e-6);
    EXPECT_NEAR(static_cast<double>(parameters.values(3)[c]), 0.9 + 0.1 * squares / 23, 1e-5);
  }
}

TEST(BatchNorm, of_inference_goes_by_the_running_statistics) {
  const Model model = Model::build("m", {2, 2, 3}, {BatchNorm{"b"}, Relu{}}).value();
  Parameters parameters = Parameters::initialized(model, 1).value();
  for (std::size_t i = 0; i < 4; ++i) fill(parameters.values(i), i);
  for (float& variance : parameters.values(3)) variance = std::abs(variance) + 0.5f;
  Network network = make(model, 1, Mode::inference);
  fill(network.input(), 1);
  const std::vector<float> input(network.input().begin(), network.input().end());
  ASSERT_TRUE(network.forward(parameters.values().data()).ok());
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t c = i / 6;
    const float y = (input[i] - parameters.values(2)[c]) /
                        std::sqrt(parameters.values(3)[c] + 1e-5f) * parameters.values(0)[c] +
                    parameters.values(1)[c];
    EXPECT_NEAR(network.output()[i], std::max(y, 0.0f), 1e-5f) << i;
  }
}

TEST(BatchNorm, of_one_value_per_channel_cannot_be_trained) {
  const Model model = Model::build("m", {2, 1, 1}, {BatchNorm{"b"}}).value();
  const auto network = Network::create(model, 1, {});
  ASSERT_EQ(network.code(), Code::invalid_argument);
  EXPECT_NE(network.error().message.find("batch norm 'b'"), std::string::npos);
  EXPECT_TRUE(Network::create(model, 1, {.mode = Mode::inference}).ok());
}

}  // namespace
}  // namespace troupe::kernels
