// Weights and optimizer state on each kind of device: the bits are the host's.
#include "kernels/training_state.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/models.hpp"
#include "kernels/philox.hpp"
#include "kernels/simulated/internal/simulated_backend.hpp"
#include "kernels/statistics.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/device_network.hpp"
#include "tests/kernels/patterned_batch.hpp"

namespace troupe::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr float kStatisticScale = 1.0f / 12;

/// Two batch norms of different momentum; more than one block of a sum of squares.
Model small_model() {
  return Model::build("small", {3, 5, 7},
                      {BatchNorm{"a"}, BatchNorm{.name = "b", .momentum = 0.3f}, BatchNorm{"c"},
                       Linear{"d", 911}, Linear{"e", 3}})
      .value();
}

/// What is done on it, and the CPU: in order, and in many others.
std::vector<ComputeDevice> devices() {
  std::vector<ComputeDevice> all = {ComputeDevice(), test_device().value()};
  for (std::uint32_t seed = 0; seed < 6; ++seed)
    all.push_back(ComputeDevice::open({Device::simulated, seed}).value());
  return all;
}

TrainingState::Contents initial(const Optimizer& optimizer) {
  return {Parameters::initialized(optimizer.model(), 1).value(), optimizer.initial_state().value()};
}

TrainingState make(const ComputeDevice& device, const Model& model,
                   const OptimizerOptions& options) {
  auto optimizer = make_optimizer(options, model).value();
  auto contents = initial(*optimizer);
  return TrainingState::create(device, std::move(optimizer), std::move(contents)).value();
}

/// Random, and zero between the parameters.
std::vector<float> gradient(const Model& model, std::uint64_t seed) {
  std::vector<float> values(model.flat_size());
  Philox random(seed);
  for (const ParameterInfo& info : model.parameters())
    for (std::size_t i = 0; i < info.elements; ++i) values[info.offset + i] = random.normal();
  return values;
}

/// The same in three runs, cut anywhere.
std::vector<GradientRun> runs(std::span<const float> all) {
  const std::size_t a = all.size() / 3 + 1, b = all.size() - 5;
  return {{0, all.first(a)}, {a, all.subspan(a, b - a)}, {b, all.subspan(b)}};
}

UpdateFactors factors(std::uint64_t update) {
  return {.update = update, .learning_rate = 0.01, .gradient_scale = 1.0f / 7};
}

bool same(const Parameters& a, const Parameters& b) {
  return std::memcmp(a.values().data(), b.values().data(), a.values().size_bytes()) == 0;
}

void expect_equal(const TrainingState::Contents& actual, const TrainingState::Contents& expected,
                  const std::string& what) {
  EXPECT_TRUE(same(actual.parameters, expected.parameters)) << what << ": weights";
  ASSERT_EQ(actual.optimizer_state.size(), expected.optimizer_state.size());
  for (std::size_t i = 0; i < expected.optimizer_state.size(); ++i)
    EXPECT_TRUE(same(actual.optimizer_state[i], expected.optimizer_state[i])) << what << ": " << i;
}

class TrainingStateOf : public testing::TestWithParam<OptimizerOptions> {};

TEST_P(TrainingStateOf, takes_the_hosts_updates_on_every_device) {
  const Model model = small_model();
  const auto optimizer = make_optimizer(GetParam(), model).value();
  auto expected = initial(*optimizer);
  for (std::uint64_t update = 1; update <= 3; ++update) {
    const auto values = gradient(model, update);
    const GradientRun whole{0, values};
    optimizer->update(factors(update), {&whole, 1}, expected.parameters, expected.optimizer_state);
    update_statistics(model, 0, values, kStatisticScale, expected.parameters.values());
  }
  for (const ComputeDevice& device : devices()) {
    TrainingState state = make(device, model, GetParam());
    for (std::uint64_t update = 1; update <= 3; ++update) {
      auto values = gradient(model, update);
      ASSERT_TRUE(state.update(factors(update), runs(values), kStatisticScale).ok());
      std::ranges::fill(values, 1e30f);  // it is the caller's again
    }
    expect_equal(state.contents().value(), expected, to_string(device.name()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, TrainingStateOf,
    testing::Values(OptimizerOptions{.name = "sgd"},
                    OptimizerOptions{.name = "sgd", .momentum = 0.9, .weight_decay = 0.1},
                    OptimizerOptions{
                        .name = "sgd", .momentum = 0.9, .nesterov = true, .decay_vectors = false},
                    OptimizerOptions{.name = "adam", .weight_decay = 0.1},
                    OptimizerOptions{.name = "adamw", .weight_decay = 0.1, .decay_vectors = false},
                    OptimizerOptions{.name = "lamb", .weight_decay = 0.1},
                    OptimizerOptions{.name = "lamb", .decay_vectors = false},
                    OptimizerOptions{.name = "lars", .momentum = 0.9, .weight_decay = 0.1}),
    [](const auto& x) { return x.param.name + std::to_string(x.index); });

TEST(TrainingState, sends_a_long_gradient_in_more_pieces_than_it_has_places_for) {
  const Model model = Model::build("m", {1200}, {Linear{"a", 1300}}).value();
  const auto all = gradient(model, 1);
  const auto trained = [&](const ComputeDevice& device) {
    TrainingState state = make(device, model, {});
    for (std::uint64_t update = 1; update <= 2; ++update)
      EXPECT_TRUE(state.update(factors(update), runs(all), 1.0f).ok());
    return state.contents().value();
  };
  const auto expected = trained(ComputeDevice());
  for (const ComputeDevice& device : devices())
    expect_equal(trained(device), expected, to_string(device.name()));
}

/// What two ranks' passes and updates by their gradients come to. Nobody waits in between.
TrainingState::Contents train(const Model& model, const ComputeDevice& device, bool resident) {
  TrainingState state = make(device, model, {.name = "adamw"});
  std::vector<Workspace> ranks;
  for (int i = 0; i < 2; ++i) ranks.push_back(Workspace::create(model, {.device = device}).value());
  std::vector<float> sum(model.flat_size()), own(model.flat_size());
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::ranges::fill(sum, 0.0f);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const Batch batch = patterned_batch(model, static_cast<std::int64_t>(2 + rank));
      const auto pass = [&](const Weights& weights) {
        EXPECT_TRUE(ranks[rank].forward_backward(weights, batch.samples, batch.labels, own).ok());
      };
      if (resident)
        pass(state.weights());
      else
        pass(state.copy().value().parameters);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
    }
    EXPECT_TRUE(state.update(factors(step + 1), runs(sum), 1.0f / 5).ok());
  }
  const Batch batch = patterned_batch(model, 3);
  const auto contents = state.contents().value();
  EXPECT_EQ(ranks[0].evaluate(state.weights(), batch.samples, batch.labels).value().loss_sum,
            ranks[1].evaluate(contents.parameters, batch.samples, batch.labels).value().loss_sum);
  const Tensor logits = ranks[0].predict(state.weights(), batch.samples).value();
  const Tensor expected = ranks[1].predict(contents.parameters, batch.samples).value();
  EXPECT_TRUE(std::ranges::equal(logits.data<float>(), expected.data<float>()));
  return contents;
}

TEST(TrainingState, is_read_by_passes_as_if_they_were_given_a_copy) {
  const Model model =
      make_model("resnet18", {.input = {3, 16, 16}, .small_images = true, .width = 4}).value();
  const auto on_cpu = train(model, ComputeDevice(), false);
  for (const ComputeDevice& device : devices()) {
    const std::string name = to_string(device.name());
    const auto resident = train(model, device, true);
    if (device.kind() == Device::cuda)
      expect_equal(resident, train(model, device, false), name);
    else
      expect_equal(resident, on_cpu, name);
    EXPECT_EQ(device.memory().used, 0u) << name << ": nothing is left behind";
  }
}

TEST(TrainingState, goes_on_from_what_another_one_has) {
  const Model model = small_model();
  for (const ComputeDevice& device : devices()) {
    TrainingState one = make(device, model, {.name = "adam"});
    TrainingState other = make(ComputeDevice(), model, {.name = "adam"});
    const auto a = gradient(model, 1), b = gradient(model, 2);
    ASSERT_TRUE(one.update(factors(1), runs(a), 1.0f).ok());
    const auto between = one.copy().value();
    ASSERT_TRUE(one.update(factors(2), runs(b), 1.0f).ok());
    const std::vector<Buffer> buffers = {between.optimizer_state[0].buffer(),
                                         between.optimizer_state[1].buffer()};
    ASSERT_TRUE(other.write(between.parameters.buffer(), buffers).ok());
    expect_equal(other.contents().value(), between, "a copy stays as it is");
    ASSERT_TRUE(other.update(factors(2), runs(b), 1.0f).ok());
    expect_equal(other.contents().value(), one.contents().value(), to_string(device.name()));
    ASSERT_TRUE(one.write(between.parameters.buffer(), buffers).ok());
    expect_equal(one.contents().value(), between, to_string(device.name()));
  }
}

TEST(TrainingState, takes_over_the_hosts_buffers_and_shows_them) {
  const Model model = small_model();
  auto optimizer = make_optimizer({.momentum = 0.9}, model).value();
  auto contents = initial(*optimizer);
  const float* const weights = contents.parameters.values().data();
  const float* const momentum = contents.optimizer_state[0].values().data();
  const auto state = TrainingState::create({}, std::move(optimizer), std::move(contents)).value();
  EXPECT_EQ(state.weights().values().data(), weights);
  EXPECT_EQ(state.contents().value().parameters.values().data(), weights);
  EXPECT_EQ(state.contents().value().optimizer_state[0].values().data(), momentum);
  EXPECT_NE(state.copy().value().parameters.values().data(), weights);
}

TEST(TrainingState, refuses_what_does_not_fit_and_stays_as_it_was) {
  const Model model = small_model();
  for (const ComputeDevice& device : devices()) {
    TrainingState state = make(device, model, {.momentum = 0.9});
    const auto before = state.copy().value();
    const Buffer whole = before.parameters.buffer();
    const Buffer part = whole.slice(0, whole.size() - 4);
    const auto two = state.write(whole, std::vector<Buffer>{whole, whole});
    ASSERT_EQ(two.code(), Code::shape_mismatch);
    EXPECT_THAT(two.error().message, HasSubstr("2 buffers"));
    EXPECT_EQ(state.write(whole, std::vector<Buffer>{part}).code(), Code::shape_mismatch);
    EXPECT_EQ(state.write(part, std::vector<Buffer>{whole}).code(), Code::shape_mismatch);
    expect_equal(state.contents().value(), before, "after refusals");
  }
  auto optimizer = make_optimizer({.name = "adam"}, model).value();
  auto contents = initial(*optimizer);
  contents.optimizer_state.pop_back();
  EXPECT_EQ(TrainingState::create({}, std::move(optimizer), std::move(contents)).code(),
            Code::shape_mismatch);
}

TEST(TrainingState, is_for_passes_on_its_own_device) {
  const Model model = make_model("lenet5").value();
  const ComputeDevice device = ComputeDevice::open({Device::simulated, 3}).value();
  const TrainingState state = make(device, model, {});
  Workspace workspace = Workspace::create(model).value();
  const Batch batch = patterned_batch(model, 2);
  const auto result = workspace.evaluate(state.weights(), batch.samples, batch.labels);
  ASSERT_EQ(result.code(), Code::invalid_argument);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("simulated:3"), HasSubstr("on cpu")));
}

TEST(TrainingState, says_that_it_does_not_fit_on_the_device) {
  const Model model = Model::build("m", {600}, {Linear{"a", 1000}}).value();
  const ComputeDevice device(simulated::make_backend({.memory = std::size_t{8} << 20}).value());
  auto optimizer = make_optimizer({.name = "adam"}, model).value();
  auto contents = initial(*optimizer);
  const auto state = TrainingState::create(device, std::move(optimizer), std::move(contents));
  ASSERT_EQ(state.code(), Code::resource_exhausted);
  EXPECT_THAT(state.error().message, HasSubstr("simulated has no "));
  EXPECT_EQ(device.memory().used, 0u);
}

TEST(TrainingState, reserves_what_it_will_take_before_there_are_weights) {
  const Model model = Model::build("m", {600}, {Linear{"a", 1000}}).value();
  auto optimizer = make_optimizer({.name = "adam"}, model).value();
  const ComputeDevice small(simulated::make_backend({.memory = std::size_t{8} << 20}).value());
  EXPECT_EQ(TrainingState::reserve(small, *optimizer).code(), Code::resource_exhausted);
  const ComputeDevice device(simulated::make_backend({.memory = std::size_t{16} << 20}).value());
  ASSERT_TRUE(TrainingState::reserve(device, *optimizer).ok());
  EXPECT_EQ(device.memory().used, 0u);
  const std::size_t held = device.memory().held;
  auto contents = initial(*optimizer);
  const auto state = TrainingState::create(device, std::move(optimizer), std::move(contents));
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_EQ(device.memory().held, held) << "no more was asked of the device";
}

}  // namespace
}  // namespace troupe::kernels
