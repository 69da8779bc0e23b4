#include <algorithm>
#include <barrier>
#include <cmath>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/model_builder.hpp"
#include "kernels/models.hpp"
#include "kernels/rank_sums.hpp"
#include "kernels/statistics.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

constexpr std::int64_t kClasses = 3;

/// Sums over ranks that are threads, in the ranks' order.
class Ranks {
public:
  explicit Ranks(std::size_t ranks) : given_(ranks), barrier_(static_cast<std::ptrdiff_t>(ranks)) {}

  SumOverRanks of(std::size_t rank) {
    return [this, rank](std::span<double> values) {
      given_[rank].assign(values.begin(), values.end());
      barrier_.arrive_and_wait();
      std::vector<double> sum(values.size());
      for (const auto& given : given_)
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += given.at(i);
      barrier_.arrive_and_wait();
      std::ranges::copy(sum, values.begin());
      if (rank == 0) ++calls_, widest_ = std::max(widest_, values.size());
      return Status();
    };
  }
  std::size_t calls() const { return calls_; }
  std::size_t widest() const { return widest_; }

private:
  std::vector<std::vector<double>> given_;
  std::barrier<> barrier_;
  std::size_t calls_ = 0, widest_ = 0;  ///< of rank 0
};

SumOverRanks alone() {
  return [](std::span<double>) { return Status(); };
}

/// Convolutions whose channels lie in blocks, batch norms with and without a ReLU behind them, and
/// a branch.
Model model_with(bool synchronized) {
  ModelBuilder model("m", {2, 5, 5});
  const auto convolution = [&](const char* name, ModelBuilder::Value x) {
    return model.add(Convolution{.name = name, .out_channels = 20, .kernel = 3, .padding = 1}, x);
  };
  const auto norm = [&](const char* name, ModelBuilder::Value x) {
    return model.add(BatchNorm{.name = name, .synchronized = synchronized}, x);
  };
  const auto a = model.add(Relu{}, norm("n1", convolution("c1", model.input())));
  const auto b = norm("n2", convolution("c2", a));
  const auto joined = model.add(Relu{}, model.add(Add{}, b, a));
  model.add(Linear{"fc", kClasses},
            model.add(Flatten{}, model.add(GlobalAveragePooling{}, joined)));
  return model.build().value();
}

struct Samples {
  Tensor images, labels;
  Samples rows(std::int64_t begin, std::int64_t end) const {
    return {images.rows(begin, end).value(), labels.rows(begin, end).value()};
  }
};

Samples random_samples(const Model& model, std::int64_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(3.0f, 2.0f);
  Samples samples{Tensor::allocate(DType::f32, model.input().with_first(count)).value(),
                  Tensor::allocate(DType::i32, {count}).value()};
  for (float& x : samples.images.data<float>()) x = normal(random);
  for (auto& x : samples.labels.data<std::int32_t>())
    x = static_cast<std::int32_t>(random() % kClasses);
  return samples;
}

WorkspaceOptions on_test_device() {
  WorkspaceOptions options;
  options.device = test_device().value();
  return options;
}

/// The gradients, and what the statistics' places hold, summed over ranks with these parts of the
/// samples.
std::vector<double> of_ranks(const Model& model, const Samples& samples,
                             const std::vector<std::int64_t>& cuts,
                             const WorkspaceOptions& options = on_test_device()) {
  const Parameters parameters = Parameters::initialized(model, 3).value();
  Ranks ranks(cuts.size() - 1);
  std::vector<std::vector<float>> gradients(cuts.size() - 1);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank + 1 < cuts.size(); ++rank)
    threads.emplace_back([&, rank] {
      Workspace workspace = Workspace::create(model, options).value();
      const Samples own = samples.rows(cuts[rank], cuts[rank + 1]);
      gradients[rank].resize(model.flat_size());
      const auto result = workspace.forward_backward(
          parameters, own.images, own.labels, gradients[rank], {.sum_over_ranks = ranks.of(rank)});
      EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ranks.calls(), rank_sums(model).calls);
  EXPECT_EQ(ranks.widest(), rank_sums(model).widest);
  std::vector<double> sum(model.flat_size());
  for (const auto& of_rank : gradients)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(of_rank[i]);
  return sum;
}

std::vector<float> of_one_pass(const Model& model, const Samples& samples,
                               const WorkspaceOptions& options = on_test_device()) {
  const Parameters parameters = Parameters::initialized(model, 3).value();
  Workspace workspace = Workspace::create(model, options).value();
  std::vector<float> gradients(model.flat_size());
  EXPECT_TRUE(workspace
                  .forward_backward(parameters, samples.images, samples.labels, gradients,
                                    {.sum_over_ranks = alone()})
                  .ok());
  return gradients;
}

TEST(SynchronizedBatchNorm, of_ranks_with_parts_of_a_batch_is_a_batch_norm_of_the_whole) {
  const Samples samples = random_samples(model_with(true), 9);
  const auto whole = of_one_pass(model_with(false), samples);
  // A rank with one sample, which alone has no use for its statistics.
  for (const std::vector<std::int64_t>& cuts :
       {std::vector<std::int64_t>{0, 9}, {0, 4, 9}, {0, 1, 4, 9}}) {
    const auto parts = of_ranks(model_with(true), samples, cuts);
    for (std::size_t i = 0; i < whole.size(); ++i)
      ASSERT_NEAR(parts[i], static_cast<double>(whole[i]),
                  2e-5 * std::max(1.0, std::abs(static_cast<double>(whole[i]))))
          << i << " of " << cuts.size() - 1 << " ranks";
  }
}

TEST(SynchronizedBatchNorm, on_a_device_whose_work_runs_late_gives_the_same_bits) {
  const Model model = model_with(true);
  const Samples samples = random_samples(model, 9);
  const auto expected = of_ranks(model, samples, {0, 1, 4, 9}, {});
  for (const char* name : {"simulated:1", "simulated:2"}) {
    const auto device = ComputeDevice::open(DeviceName::parse(name).value()).value();
    EXPECT_EQ(of_ranks(model, samples, {0, 1, 4, 9}, {.device = device}), expected) << name;
  }
}

TEST(SynchronizedBatchNorm, gives_the_same_bits_with_any_number_of_threads) {
  const Model model =
      Model::build("m", {20, 5, 5},
                   {BatchNorm{.name = "n", .synchronized = true}, Relu{}, Flatten{}})
          .value();
  const Samples samples = random_samples(model, 6);
  const auto one = of_one_pass(model, samples);
  WorkspaceOptions options = on_test_device();
  options.threads = 3;
  EXPECT_EQ(of_one_pass(model, samples, options), one);
}

TEST(SynchronizedBatchNorm, has_the_variance_of_values_that_are_far_from_zero) {
  const Model model = Model::build("m", {1, 2, 2},
                                   {BatchNorm{.name = "n", .synchronized = true}, Flatten{},
                                    Linear{"fc", kClasses}})
                          .value();
  Samples samples = random_samples(model, 4);
  for (float& x : samples.images.data<float>()) x = 1000.0f + x / 64;
  double mean = 0, squares = 0;
  for (const float x : samples.images.data<float>()) mean += static_cast<double>(x) / 16;
  for (const float x : samples.images.data<float>())
    squares += std::pow(static_cast<double>(x) - mean, 2);
  const auto sums = of_ranks(model, samples, {0, 2, 4});
  EXPECT_NEAR(sums[model.parameters()[*model.find_parameter("n.running_var")].offset] / 4,
              squares / 15, 1e-6 * squares);
}

TEST(SynchronizedBatchNorm, takes_one_value_of_a_channel_from_a_rank_but_not_from_all_together) {
  const Model model = Model::build("m", {4},
                                   {Linear{"a", 8}, Reshape{{8, 1, 1}},
                                    BatchNorm{.name = "n", .synchronized = true}, Flatten{},
                                    Linear{"fc", kClasses}})
                          .value();
  const Samples samples = random_samples(model, 2);
  of_ranks(model, samples, {0, 1, 2});
  const Parameters parameters = Parameters::initialized(model, 3).value();
  Workspace workspace = Workspace::create(model, on_test_device()).value();
  std::vector<float> gradients(model.flat_size());
  const Samples one = samples.rows(0, 1);
  const auto result = workspace.forward_backward(parameters, one.images, one.labels, gradients,
                                                 {.sum_over_ranks = alone()});
  ASSERT_EQ(result.code(), Code::invalid_argument);
  EXPECT_NE(result.error().message.find("batch norm 'n'"), std::string::npos);
}

TEST(SynchronizedBatchNorm, needs_sums_in_training_only_and_ends_with_their_error) {
  const Model model = model_with(true);
  const Samples samples = random_samples(model, 4);
  const Parameters parameters = Parameters::initialized(model, 3).value();
  Workspace workspace = Workspace::create(model, on_test_device()).value();
  std::vector<float> gradients(model.flat_size());
  EXPECT_EQ(
      workspace.forward_backward(parameters, samples.images, samples.labels, gradients).code(),
      Code::failed_precondition);
  EXPECT_TRUE(workspace.evaluate(parameters, samples.images, samples.labels).ok());
  // Forward, and backward.
  for (const int fails : {0, 3}) {
    int calls = 0;
    const auto sum = [&](std::span<double>) {
      return calls++ == fails ? Status{Code::unavailable, "rank 2 is gone"} : Status();
    };
    EXPECT_EQ(workspace
                  .forward_backward(parameters, samples.images, samples.labels, gradients,
                                    {.sum_over_ranks = sum})
                  .code(),
              Code::unavailable);
  }
  EXPECT_TRUE(workspace
                  .forward_backward(parameters, samples.images, samples.labels, gradients,
                                    {.sum_over_ranks = alone()})
                  .ok());
  EXPECT_EQ(gradients, of_one_pass(model, samples));
}

TEST(SynchronizedBatchNorm, is_what_models_have_that_are_asked_for_it) {
  ModelConfig config{.input = {3, 32, 32}, .small_images = true, .width = 4};
  EXPECT_EQ(rank_sums(make_model("resnet18", config).value()).calls, 0u);
  config.synchronized_batch_norm = true;
  const RankSums sums = rank_sums(make_model("resnet18", config).value());
  EXPECT_EQ(sums.calls, 2u * 20u);
  EXPECT_EQ(sums.widest, 1u + 2u * 32u);
  EXPECT_EQ(rank_sums(make_model("vgg16_bn", config).value()).calls, 2u * 13u);
  const auto none = make_model("vgg16", config);
  ASSERT_EQ(none.code(), Code::invalid_argument);
  EXPECT_NE(none.error().message.find("'vgg16'"), std::string::npos);
}

}  // namespace
}  // namespace troupe::kernels
