#include "kernels/layers/activation.hpp"

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

namespace {

Result<Shape> same_shape(const std::string& what, std::span<const Shape> inputs) {
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  return inputs[0];
}

}  // namespace

Result<Shape> Relu::output_shape(std::span<const Shape> inputs) const {
  return same_shape(describe(), inputs);
}
Result<Shape> Gelu::output_shape(std::span<const Shape> inputs) const {
  return same_shape(describe(), inputs);
}
Result<Shape> Silu::output_shape(std::span<const Shape> inputs) const {
  return same_shape(describe(), inputs);
}
Result<Shape> Sigmoid::output_shape(std::span<const Shape> inputs) const {
  return same_shape(describe(), inputs);
}
Result<Shape> Tanh::output_shape(std::span<const Shape> inputs) const {
  return same_shape(describe(), inputs);
}

}  // namespace troupe::kernels
