#include "kernels/layers/convolution.hpp"

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

std::string Convolution::describe() const {
  return fmt::format("convolution '{}'", name);
}

Result<Shape> Convolution::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_size(what, "out_channels", out_channels, 1));
  TROUPE_TRY(layers::require_size(what, "groups", groups, 1));
  TROUPE_TRY(layers::require_image(what, inputs[0]));
  if (out_channels % groups != 0 || inputs[0][0] % groups != 0)
    return Error{Code::shape_mismatch,
                 fmt::format("{}: {} groups do not divide {} input and {} output channels", what,
                             groups, inputs[0][0], out_channels)};
  return layers::slide(what, inputs[0], out_channels, {kernel, stride, padding, dilation});
}

Result<std::vector<ParameterSpec>> Convolution::parameters(std::span<const Shape> inputs) const {
  const std::int64_t in = inputs[0][0] / groups;
  const std::int64_t dims[] = {out_channels, in, kernel, kernel};
  TROUPE_ASSIGN(const Shape weight, Shape::checked(dims));
  const Initial by_fan_in = Initial::by_fan_in(in * kernel * kernel);
  std::vector<ParameterSpec> list{{"weight", weight, initial.value_or(by_fan_in)}};
  if (bias) list.push_back({"bias", Shape{out_channels}, initial_bias.value_or(by_fan_in)});
  return list;
}

}  // namespace troupe::kernels
