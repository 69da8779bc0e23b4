#include "kernels/layers/dropout.hpp"

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

Result<Shape> Dropout::output_shape(std::span<const Shape> inputs) const {
  TROUPE_TRY(layers::require_inputs(describe(), inputs, 1));
  if (!(probability >= 0.0f && probability < 1.0f))
    return Error{
        Code::invalid_argument,
        fmt::format("dropout: probability is {}, but must be at least 0 and below 1", probability)};
  return inputs[0];
}

}  // namespace troupe::kernels
