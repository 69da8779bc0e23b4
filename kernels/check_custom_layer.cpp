#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "kernels/custom_layer.hpp"
#include "kernels/internal/custom_pass.hpp"
#include "kernels/philox.hpp"

namespace troupe::kernels {
namespace {

using Floats = std::vector<float>;

/// Of inputs and parameters in float: rounding of outputs near 1, and the third derivative, make
/// an error of some 1e-5 each.
constexpr float kStep = 0x1p-7f;

/// A layer with all that its passes read and write.
class Check {
public:
  Check(const Custom& custom, std::int64_t batch, double tolerance)
      : custom_(custom), batch_(batch), tolerance_(tolerance) {}

  Status prepare(const std::vector<Shape>& inputs, std::uint64_t seed) {
    TROUPE_ASSIGN(const Shape output, custom_.output_shape(inputs));
    TROUPE_ASSIGN(const auto specs, custom_.parameters(inputs));
    std::uint64_t stream = 0;
    const auto random = [&](std::int64_t elements) {
      Philox numbers(seed, {stream++});
      Floats values(static_cast<std::size_t>(elements));
      for (float& value : values) value = numbers.uniform(-1.0f, 1.0f);
      return values;
    };
    for (const Shape& input : inputs) inputs_.push_back(random(batch_ * input.elements()));
    for (const ParameterSpec& spec : specs) {
      parameters_.push_back(random(spec.shape.elements()));
      names_.push_back(fmt::format("parameter '{}'", spec.name));
    }
    output_ = random(batch_ * output.elements());
    factors_ = random(batch_ * output.elements());
    return {};
  }

  Status run() {
    TROUPE_TRY(forward());
    const Floats output = output_;
    TROUPE_TRY(backward());
    const auto parameter_gradients = parameter_gradients_;
    const auto input_gradients = input_gradients_;
    TROUPE_TRY(forward());
    TROUPE_TRY(backward());
    if (!same(output_, output)) return differs("output");
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!same(parameter_gradients_[i], parameter_gradients[i])) return differs(names_[i]);
      TROUPE_TRY(compare(parameters_[i], parameter_gradients[i], names_[i]));
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::string name = fmt::format("input {}", i);
      if (!same(input_gradients_[i], input_gradients[i])) return differs(name);
      TROUPE_TRY(compare(inputs_[i], input_gradients[i], name));
    }
    return {};
  }

private:
  static std::vector<std::span<const float>> read(const std::vector<Floats>& from) {
    return {from.begin(), from.end()};
  }
  /// Of the sizes of `like`, and whatever is in them, which must not matter.
  static std::vector<std::span<float>> write(std::vector<Floats>& to,
                                             const std::vector<Floats>& like) {
    to.resize(like.size());
    for (std::size_t i = 0; i < like.size(); ++i) to[i].resize(like[i].size());
    return {to.begin(), to.end()};
  }
  static bool same(const Floats& a, const Floats& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
  Status differs(const std::string& what) const {
    return {Code::internal,
            fmt::format("{}: two passes on the same samples give different bits for {}; what a "
                        "pass gives must depend on nothing else",
                        custom_.describe(), what)};
  }

  Status forward() {
    const auto inputs = read(inputs_), parameters = read(parameters_);
    return run_forward(custom_, {batch_, inputs, parameters, output_, 1});
  }
  Status backward() {
    const auto inputs = read(inputs_), parameters = read(parameters_);
    const auto to_parameters = write(parameter_gradients_, parameters_);
    const auto to_inputs = write(input_gradients_, inputs_);
    return run_backward(
        custom_, {batch_, inputs, parameters, output_, factors_, to_parameters, to_inputs, 1});
  }

  Result<double> loss_at(float& place, float value) {
    const float before = place;
    place = value;
    const Status status = forward();
    place = before;
    TROUPE_TRY(status);
    double sum = 0.0;
    for (std::size_t i = 0; i < output_.size(); ++i)
      sum += static_cast<double>(factors_[i]) * static_cast<double>(output_[i]);
    return sum;
  }

  Status compare(Floats& values, const Floats& gradient, const std::string& what) {
    double greatest = 1.0;
    for (const float value : gradient)
      greatest = std::max(greatest, std::abs(static_cast<double>(value)));
    // Each element takes two passes.
    constexpr std::size_t kMost = 100;
    const std::size_t step = values.size() <= kMost ? 1 : values.size() / kMost | 1;
    for (std::size_t i = 0; i < values.size(); i += step) {
      const float above = values[i] + kStep, below = values[i] - kStep;
      TROUPE_ASSIGN(const double more, loss_at(values[i], above));
      TROUPE_ASSIGN(const double less, loss_at(values[i], below));
      const double difference =
          (more - less) / (static_cast<double>(above) - static_cast<double>(below));
      // Not so for a NaN either.
      if (std::abs(static_cast<double>(gradient[i]) - difference) <= tolerance_ * greatest)
        continue;
      return {Code::internal,
              fmt::format("{}: element {} of the gradient by {} is {}, but the output's central "
                          "difference is {}; look for the mistake in backward",
                          custom_.describe(), i, what, gradient[i], difference)};
    }
    return {};
  }

  const Custom& custom_;
  std::int64_t batch_;
  double tolerance_;
  std::vector<std::string> names_;
  std::vector<Floats> inputs_, parameters_, input_gradients_, parameter_gradients_;
  Floats output_, factors_;
};

}  // namespace

Status check_custom_layer(const Custom& layer, const std::vector<Shape>& inputs, std::int64_t batch,
                          double tolerance, std::uint64_t seed) {
  if (batch < 1)
    return {Code::invalid_argument, fmt::format("batch is {}, but must be at least 1", batch)};
  Check check(layer, batch, tolerance);
  TROUPE_TRY(check.prepare(inputs, seed));
  return check.run();
}

}  // namespace troupe::kernels
