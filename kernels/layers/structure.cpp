#include "kernels/layers/structure.hpp"

#include <fmt/format.h>

#include "kernels/layers/checks.hpp"

namespace troupe::kernels {

Result<Shape> Flatten::output_shape(std::span<const Shape> inputs) const {
  TROUPE_TRY(layers::require_inputs(describe(), inputs, 1));
  return Shape{inputs[0].elements()};
}

Result<std::vector<ParameterSpec>> Flatten::parameters(std::span<const Shape>) const {
  return std::vector<ParameterSpec>{};
}

Result<Shape> Add::output_shape(std::span<const Shape> inputs) const {
  TROUPE_TRY(layers::require_inputs(describe(), inputs, 2));
  if (inputs[0] != inputs[1])
    return Error{Code::shape_mismatch, fmt::format("add: inputs are {} and {}, but must be alike",
                                                   to_string(inputs[0]), to_string(inputs[1]))};
  return inputs[0];
}

Result<std::vector<ParameterSpec>> Add::parameters(std::span<const Shape>) const {
  return std::vector<ParameterSpec>{};
}

}  // namespace troupe::kernels
