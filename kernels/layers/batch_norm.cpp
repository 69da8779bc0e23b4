#include "kernels/layers/batch_norm.hpp"

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

std::string BatchNorm::describe() const {
  return fmt::format("{}batch norm '{}'", synchronized ? "synchronized " : "", name);
}

Result<Shape> BatchNorm::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_image(what, inputs[0]));
  TROUPE_TRY(layers::require_epsilon(what, epsilon));
  if (!(momentum > 0.0f && momentum <= 1.0f))
    return Error{
        Code::invalid_argument,
        fmt::format("{}: momentum is {}, but must be above 0 and at most 1", what, momentum)};
  return inputs[0];
}

Result<std::vector<ParameterSpec>> BatchNorm::parameters(std::span<const Shape> inputs) const {
  const Shape channels{inputs[0][0]};
  return std::vector<ParameterSpec>{
      {"weight", channels, Initial::constant(initial_weight)},
      {"bias", channels, Initial::constant(0.0f)},
      {"running_mean", channels, Initial::constant(0.0f), ParameterKind::statistic, momentum},
      {"running_var", channels, Initial::constant(1.0f), ParameterKind::statistic, momentum},
  };
}

}  // namespace troupe::kernels
