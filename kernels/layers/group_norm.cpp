#include "kernels/layers/group_norm.hpp"

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

std::string GroupNorm::describe() const {
  return fmt::format("group norm '{}'", name);
}

Result<Shape> GroupNorm::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_size(what, "groups", groups, 1));
  TROUPE_TRY(layers::require_features(what, inputs[0]));
  TROUPE_TRY(layers::require_epsilon(what, epsilon));
  if (inputs[0][0] % groups != 0)
    return Error{Code::shape_mismatch,
                 fmt::format("{}: the channels of input {} are no multiple of its {} groups", what,
                             to_string(inputs[0]), groups)};
  return inputs[0];
}

Result<std::vector<ParameterSpec>> GroupNorm::parameters(std::span<const Shape> inputs) const {
  const Shape channels{inputs[0][0]};
  return std::vector<ParameterSpec>{{"weight", channels, Initial::constant(1.0f)},
                                    {"bias", channels, Initial::constant(0.0f)}};
}

}  // namespace troupe::kernels
