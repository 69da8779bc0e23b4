#include "kernels/layers/structure.hpp"

#include <vector>

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

Result<Shape> Flatten::output_shape(std::span<const Shape> inputs) const {
  TROUPE_TRY(layers::require_inputs(describe(), inputs, 1));
  return Shape{inputs[0].elements()};
}

Result<Shape> Reshape::output_shape(std::span<const Shape> inputs) const {
  TROUPE_TRY(layers::require_inputs(describe(), inputs, 1));
  if (shape.rank() >= Shape::kMaxRank || shape.elements() != inputs[0].elements())
    return Error{Code::shape_mismatch,
                 fmt::format("reshape: {} elements of input {} cannot be {}, which must have as "
                             "many, and at most {} axes",
                             inputs[0].elements(), to_string(inputs[0]), to_string(shape),
                             Shape::kMaxRank - 1)};
  return shape;
}

Result<Shape> Add::output_shape(std::span<const Shape> inputs) const {
  TROUPE_TRY(layers::require_inputs(describe(), inputs, 2));
  if (inputs[0] != inputs[1])
    return Error{Code::shape_mismatch, fmt::format("add: inputs are {} and {}, but must be alike",
                                                   to_string(inputs[0]), to_string(inputs[1]))};
  return inputs[0];
}

Result<Shape> Concat::output_shape(std::span<const Shape> inputs) const {
  if (inputs.empty())
    return Error{Code::invalid_argument, "concat has no inputs, but needs at least 1"};
  const auto rank = static_cast<std::int64_t>(inputs[0].rank());
  if (axis < 0 || axis >= rank)
    return Error{Code::invalid_argument, fmt::format("concat: axis is {}, but the inputs have {}",
                                                     axis, to_string(inputs[0]))};
  const auto at = static_cast<std::size_t>(axis);
  std::vector<std::int64_t> dims(inputs[0].dims().begin(), inputs[0].dims().end());
  dims[at] = 0;
  for (const Shape& input : inputs) {
    bool alike = input.rank() == inputs[0].rank();
    for (std::size_t i = 0; alike && i < dims.size(); ++i)
      alike = i == at || input[i] == inputs[0][i];
    if (!alike)
      return Error{Code::shape_mismatch,
                   fmt::format("concat: inputs are {} and {}, but must be alike except on axis {}",
                               to_string(inputs[0]), to_string(input), axis)};
    dims[at] += input[at];
  }
  return Shape::checked(dims);
}

}  // namespace troupe::kernels
