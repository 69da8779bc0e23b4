#include "tests/kernels/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "kernels/parameters.hpp"
#include "kernels/philox.hpp"
#include "tests/kernels/device_network.hpp"
#include "tests/kernels/reference.hpp"

namespace troupe::kernels {

namespace {

using Doubles = std::vector<double>;

// In double, where it leaves some ten correct digits. Small, so that few points are near a kink.
constexpr double kStep = 1e-6;

/// Each takes two passes of the whole model, so of a large tensor every n-th element is checked; n
/// is odd, so that blocks of any even size are met in all places.
std::size_t step(std::size_t elements) {
  constexpr std::size_t kMost = 100;
  return elements <= kMost ? 1 : elements / kMost | 1;
}

void fill_random(std::span<float> values, std::uint64_t seed, std::uint64_t stream) {
  Philox random(seed, {stream});
  for (float& value : values) value = random.uniform(-1.0f, 1.0f);
}

Doubles widened(std::span<const float> values) {
  return {values.begin(), values.end()};
}

void expect_close(double actual, double expected, double tolerance, const std::string& what) {
  EXPECT_NEAR(actual, expected, tolerance * std::max(1.0, std::abs(expected))) << what;
}

/// d(sum of factors * output) / d(value), where value is an element of `parameters` or `input`.
double central_difference(const Model& model, std::int64_t batch, const Doubles& parameters,
                          const Doubles& input, std::span<const float> factors, double& value) {
  const auto function = [&] {
    const Doubles output = reference_forward(model, batch, parameters, input);
    double sum = 0.0;
    for (std::size_t i = 0; i < output.size(); ++i)
      sum += static_cast<double>(factors[i]) * output[i];
    return sum;
  };
  const double before = value;
  value = before + kStep;
  const double above = function();
  value = before - kStep;
  const double below = function();
  value = before;
  return (above - below) / (2 * kStep);
}

}  // namespace

void check_gradients(const LayersUnderTest& test) {
  check_gradients(Model::build("under test", test.input, test.layers).value(), test);
}

void check_gradients(const Model& model, const LayersUnderTest& test) {
  const ComputeDevice device = test_device().value();
  if (test.choice == KernelChoice::portable && device.kind() != Device::cpu)
    GTEST_SKIP() << "the portable kernels are the CPU's";
  NetworkOptions options;
  options.choice = test.choice;
  options.threads = test.threads;
  const bool ids = model.input_dtype() == DType::i32;
  options.input_gradient = !ids;
  auto made = DeviceNetwork::create(model, test.batch, options);
  if (made.code() == Code::not_supported && device.kind() != Device::cpu)
    GTEST_SKIP() << made.error().message;
  DeviceNetwork network = std::move(made).value();
  Parameters parameters = Parameters::zeros(model).value();
  for (std::size_t i = 0; i < model.parameters().size(); ++i)
    fill_random(parameters.values(i), test.seed, i);
  const auto elements = static_cast<std::size_t>(test.batch * model.input().elements());
  Doubles wide_input;
  if (ids) {
    Philox random(test.seed, {1000});
    std::vector<std::int32_t> values(elements);
    for (std::int32_t& id : values)
      id = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.vocabulary())));
    network.set_ids(values);
    wide_input = {values.begin(), values.end()};
  } else {
    std::vector<float> values(elements);
    fill_random(values, test.seed, 1000);
    network.set_input(values);
    wide_input = widened(values);
  }
  std::vector<float> factors(network.output_size());
  fill_random(factors, test.seed, 1001);

  Doubles wide_parameters = widened(parameters.values());
  const Status forward = network.forward(parameters.values());
  ASSERT_TRUE(forward.ok()) << to_string(forward.error());
  const Doubles expected = reference_forward(model, test.batch, wide_parameters, wide_input);
  ASSERT_EQ(network.output().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    expect_close(network.output()[i], expected[i], kForwardTolerance,
                 "output " + std::to_string(i));

  // Whatever was there is overwritten.
  std::vector<float> gradients(model.flat_size(), std::numeric_limits<float>::quiet_NaN());
  const Status done = network.backward(factors, gradients);
  ASSERT_TRUE(done.ok()) << to_string(done.error());

  for (const ParameterInfo& info : model.parameters()) {
    if (info.kind != ParameterKind::trained) continue;
    for (std::size_t i = info.offset; i < info.offset + info.elements; i += step(info.elements))
      expect_close(gradients[i],
                   central_difference(model, test.batch, wide_parameters, wide_input, factors,
                                      wide_parameters[i]),
                   kGradientTolerance, info.name + " " + std::to_string(i - info.offset));
  }
  if (ids) return;
  for (std::size_t i = 0; i < wide_input.size(); i += step(wide_input.size()))
    expect_close(
        network.input_gradient()[i],
        central_difference(model, test.batch, wide_parameters, wide_input, factors, wide_input[i]),
        kGradientTolerance, "input " + std::to_string(i));
}

}  // namespace troupe::kernels
