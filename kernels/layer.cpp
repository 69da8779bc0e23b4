#include "kernels/layer.hpp"

namespace troupe::kernels {

std::string describe(const LayerSpec& layer) {
  return std::visit([](const auto& spec) { return spec.describe(); }, layer);
}

Result<Shape> output_shape(const LayerSpec& layer, std::span<const Shape> inputs) {
  return std::visit([&](const auto& spec) { return spec.output_shape(inputs); }, layer);
}

Result<std::vector<ParameterSpec>> parameters_of(const LayerSpec& layer,
                                                 std::span<const Shape> inputs) {
  return std::visit(
      [&](const auto& spec) -> Result<std::vector<ParameterSpec>> {
        if constexpr (requires { spec.parameters(inputs); })
          return spec.parameters(inputs);
        else
          return std::vector<ParameterSpec>{};
      },
      layer);
}

std::string name_of(const LayerSpec& layer) {
  return std::visit(
      [](const auto& spec) {
        if constexpr (requires { spec.name; })
          return spec.name;
        else
          return std::string();
      },
      layer);
}

DType input_dtype(const LayerSpec& layer) {
  return std::visit(
      [](const auto& spec) {
        if constexpr (requires { spec.kInput; })
          return spec.kInput;
        else
          return DType::f32;
      },
      layer);
}

}  // namespace troupe::kernels
