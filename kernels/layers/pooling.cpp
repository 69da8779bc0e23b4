#include "kernels/layers/pooling.hpp"

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

Result<Shape> Pooling::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  // A window must touch the input, or its maximum is -infinity.
  if (padding * 2 > kernel)
    return Error{
        Code::invalid_argument,
        fmt::format("{}: padding {} is more than half of kernel {}", what, padding, kernel)};
  TROUPE_TRY(layers::require_image(what, inputs[0]));
  return layers::slide(what, inputs[0], inputs[0][0], {kernel, stride, padding});
}

Result<Shape> AdaptivePooling::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_size(what, "height", height, 1));
  TROUPE_TRY(layers::require_size(what, "width", width, 1));
  TROUPE_TRY(layers::require_image(what, inputs[0]));
  const std::int64_t dims[] = {inputs[0][0], height, width};
  return Shape::checked(dims);
}

Result<Shape> GlobalAveragePooling::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_image(what, inputs[0]));
  return Shape{inputs[0][0], 1, 1};
}

}  // namespace troupe::kernels
