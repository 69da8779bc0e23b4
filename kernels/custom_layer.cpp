#include "kernels/custom_layer.hpp"

#include <exception>

#include <fmt/format.h>

namespace troupe::kernels {

std::string Custom::describe() const {
  return fmt::format("custom layer '{}'", name);
}

Result<Shape> Custom::output_shape(std::span<const Shape> inputs) const {
  if (layer == nullptr)
    return Error{Code::invalid_argument,
                 fmt::format("{} is null; give it an object to compute with", describe())};
  if (name.empty()) return Error{Code::invalid_argument, "a custom layer has no name; give it one"};
  if (inputs.empty())
    return Error{Code::invalid_argument,
                 fmt::format("{} has no inputs, but needs at least 1", describe())};
  const auto shape = [&]() -> Result<Shape> {
    try {
      return layer->output_shape(inputs);
    } catch (const std::exception& thrown) {
      return Error{Code::internal,
                   fmt::format("output_shape threw an exception: {}", thrown.what())};
    }
  }();
  if (!shape.ok())
    return Error{shape.code(), fmt::format("{}: {}", describe(), shape.error().message)};
  if (shape->rank() >= Shape::kMaxRank || shape->elements() == 0)
    return Error{Code::invalid_argument,
                 fmt::format("{}: its output is {}, but must have elements, and at most {} axes",
                             describe(), to_string(*shape), Shape::kMaxRank - 1)};
  return *shape;
}

Result<std::vector<ParameterSpec>> Custom::parameters(std::span<const Shape> inputs) const {
  const auto wrong = [&](const ParameterSpec& parameter, const char* what) {
    return Error{Code::invalid_argument,
                 fmt::format("{}: its parameter '{}' {} {}", describe(), parameter.name,
                             to_string(parameter.shape), what)};
  };
  std::vector<ParameterSpec> list;
  try {
    list = layer->parameters(inputs);
  } catch (const std::exception& thrown) {
    return Error{Code::internal,
                 fmt::format("{}: parameters threw an exception: {}", describe(), thrown.what())};
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ParameterSpec& parameter = list[i];
    if (parameter.name.empty()) return wrong(parameter, "has no name; give it one");
    if (parameter.shape.elements() == 0) return wrong(parameter, "has no elements");
    if (parameter.kind != ParameterKind::trained)
      return wrong(parameter, "is a statistic, but a custom layer has trained ones only");
    if (!parameter.tied_to.empty())
      return wrong(parameter, "is tied, but a custom layer has parameters of its own only");
    for (std::size_t j = 0; j < i; ++j)
      if (list[j].name == parameter.name)
        return wrong(parameter, "has the name of another; give each its own");
  }
  return list;
}

}  // namespace troupe::kernels
