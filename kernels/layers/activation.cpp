#include "kernels/layers/activation.hpp"

#include "kernels/layers/checks.hpp"

namespace troupe::kernels {

Result<Shape> Relu::output_shape(std::span<const Shape> inputs) const {
  TROUPE_TRY(layers::require_inputs(describe(), inputs, 1));
  return inputs[0];
}

Result<std::vector<ParameterSpec>> Relu::parameters(std::span<const Shape>) const {
  return std::vector<ParameterSpec>{};
}

}  // namespace troupe::kernels
