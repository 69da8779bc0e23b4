#include "kernels/layers/layer_norm.hpp"

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

namespace {

Result<Shape> normalized(const std::string& what, std::span<const Shape> inputs, float epsilon) {
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_features(what, inputs[0]));
  TROUPE_TRY(layers::require_epsilon(what, epsilon));
  return inputs[0];
}

Shape features(std::span<const Shape> inputs) {
  return Shape{inputs[0][inputs[0].rank() - 1]};
}

}  // namespace

std::string LayerNorm::describe() const {
  return fmt::format("layer norm '{}'", name);
}

Result<Shape> LayerNorm::output_shape(std::span<const Shape> inputs) const {
  return normalized(describe(), inputs, epsilon);
}

Result<std::vector<ParameterSpec>> LayerNorm::parameters(std::span<const Shape> inputs) const {
  return std::vector<ParameterSpec>{{"weight", features(inputs), Initial::constant(1.0f)},
                                    {"bias", features(inputs), Initial::constant(0.0f)}};
}

std::string RmsNorm::describe() const {
  return fmt::format("rms norm '{}'", name);
}

Result<Shape> RmsNorm::output_shape(std::span<const Shape> inputs) const {
  return normalized(describe(), inputs, epsilon);
}

Result<std::vector<ParameterSpec>> RmsNorm::parameters(std::span<const Shape> inputs) const {
  return std::vector<ParameterSpec>{{"weight", features(inputs), Initial::constant(1.0f)}};
}

}  // namespace troupe::kernels
