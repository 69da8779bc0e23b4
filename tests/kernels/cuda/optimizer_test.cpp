// Updates on the device against the host's: the bits are equal.
#include "kernels/cuda/internal/optimizer.hpp"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/compute_device.hpp"
#include "kernels/cuda/internal/cuda_stream.hpp"
#include "kernels/internal/backend.hpp"
#include "kernels/models.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/parameters.hpp"
#include "kernels/philox.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

/// The same three updates on both sides; their weights and state must be the same bits.
void expect_same(const OptimizerOptions& options) {
  // More than one block of a sum of squares, and an odd number of them.
  const Model model =
      Model::build("m", {123}, {Linear{"a", 111}, Linear{"b", 7}, Linear{"c", 1}}).value();
  const auto optimizer = make_optimizer(options, model).value();
  Parameters parameters = Parameters::initialized(model, 1).value();
  auto state = optimizer->initial_state().value();
  std::vector<float> gradient(model.flat_size());
  Philox random(2);
  for (float& value : gradient) value = random.normal();

  const ComputeDevice device = test_device().value();
  const auto stream = device.backend().make_stream().value();
  const std::size_t bytes = model.flat_size() * sizeof(float);
  const auto send = [&](std::span<const float> values) {
    Buffer there = device.allocate(bytes).value();
    EXPECT_TRUE(stream->copy(there.data(), values.data(), bytes).ok());
    return there;
  };
  const auto floats = [](Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); };
  Buffer weights_there = send(parameters.values()), gradient_there = send(gradient);
  std::vector<Buffer> state_there;
  std::vector<float*> state_pointers;
  for (const Parameters& one : state) {
    state_there.push_back(send(one.values()));
    state_pointers.push_back(floats(state_there.back()));
  }
  for (std::uint64_t update = 1; update <= 3; ++update) {
    const UpdateFactors factors{update, 0.01, 1.0f / 7};
    const GradientRun run{0, gradient};
    optimizer->update(factors, {&run, 1}, parameters, state);
    ASSERT_TRUE(cuda::update(cuda::cuda_stream(*stream), options, model, factors,
                             floats(gradient_there), floats(weights_there), state_pointers)
                    .ok());
  }
  const auto expect_equal = [&](Buffer& there, std::span<const float> expected) {
    std::vector<float> actual(expected.size());
    ASSERT_TRUE(stream->copy(actual.data(), there.data(), bytes).ok());
    ASSERT_TRUE(stream->synchronize().ok());
    for (const ParameterInfo& info : model.parameters())
      EXPECT_EQ(std::memcmp(actual.data() + info.offset, expected.data() + info.offset,
                            info.elements * sizeof(float)),
                0)
          << options.name << " " << info.name;
  };
  expect_equal(weights_there, parameters.values());
  for (std::size_t i = 0; i < state.size(); ++i) expect_equal(state_there[i], state[i].values());
}

TEST(CudaOptimizer, sgd_takes_the_hosts_steps) {
  expect_same({.name = "sgd"});
  expect_same({.name = "sgd", .momentum = 0.9, .weight_decay = 0.1});
  expect_same({.name = "sgd", .momentum = 0.9, .nesterov = true, .decay_vectors = false});
}
TEST(CudaOptimizer, adam_takes_the_hosts_steps) {
  expect_same({.name = "adam", .weight_decay = 0.1});
  expect_same({.name = "adamw", .weight_decay = 0.1, .decay_vectors = false});
}
TEST(CudaOptimizer, lamb_and_lars_take_the_hosts_steps) {
  expect_same({.name = "lamb", .weight_decay = 0.1});
  expect_same({.name = "lamb", .decay_vectors = false});
  expect_same({.name = "lars", .momentum = 0.9, .weight_decay = 0.1, .decay_vectors = false});
}
TEST(CudaOptimizer, of_another_name_is_an_error) {
  const Model model = Model::build("m", {2}, {Linear{"a", 1}}).value();
  const ComputeDevice device = test_device().value();
  const auto stream = device.backend().make_stream().value();
  EXPECT_EQ(
      cuda::update(cuda::cuda_stream(*stream), {.name = "rprop"}, model, {}, nullptr, nullptr, {})
          .code(),
      Code::not_found);
}

}  // namespace
}  // namespace troupe::kernels
