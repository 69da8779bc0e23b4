#include "kernels/layers/linear.hpp"

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

std::string Linear::describe() const {
  return fmt::format("linear '{}'", name);
}

Result<Shape> Linear::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_size(what, "out_features", out_features, 1));
  return layers::with_last(what, inputs[0], out_features);
}

Result<std::vector<ParameterSpec>> Linear::parameters(std::span<const Shape> inputs) const {
  const std::int64_t in = inputs[0][inputs[0].rank() - 1];
  const std::int64_t dims[] = {out_features, in};
  TROUPE_ASSIGN(const Shape weight, Shape::checked(dims));
  const Initial by_fan_in = Initial::by_fan_in(in);
  std::vector<ParameterSpec> list{{"weight", weight, initial.value_or(by_fan_in)}};
  list[0].tied_to = tied_to;
  if (bias) list.push_back({"bias", Shape{out_features}, initial_bias.value_or(by_fan_in)});
  return list;
}

}  // namespace troupe::kernels
