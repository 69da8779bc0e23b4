#include "kernels/layers/lstm.hpp"

#include <tuple>

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

std::string Lstm::describe() const {
  return fmt::format("lstm '{}'", name);
}

Result<Shape> Lstm::output_shape(std::span<const Shape> inputs) const {
  // So many gates are still a size.
  constexpr std::int64_t kMostHidden = 1 << 20;
  constexpr std::int64_t kMostLayers = 1024;
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  for (const auto& [field, value, most] :
       {std::tuple{"hidden", hidden, kMostHidden}, {"layers", this->layers, kMostLayers}})
    if (value < 1 || value > most)
      return Error{Code::invalid_argument,
                   fmt::format("{}: {} is {}, but must be 1 to {}", what, field, value, most)};
  if (inputs[0].rank() != 2 || inputs[0].elements() == 0)
    return Error{Code::shape_mismatch, fmt::format("{}: input must be [time, features], not {}",
                                                   what, to_string(inputs[0]))};
  return sequence ? Shape{inputs[0][0], hidden} : Shape{hidden};
}

Result<std::vector<ParameterSpec>> Lstm::parameters(std::span<const Shape> inputs) const {
  const Initial initial = Initial::by_fan_in(hidden);
  const Shape gates{4 * hidden};
  std::vector<ParameterSpec> list;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::int64_t from_input[] = {4 * hidden, layer == 0 ? inputs[0][1] : hidden};
    const std::int64_t from_hidden[] = {4 * hidden, hidden};
    TROUPE_ASSIGN(const Shape weight_ih, Shape::checked(from_input));
    TROUPE_ASSIGN(const Shape weight_hh, Shape::checked(from_hidden));
    list.push_back({fmt::format("weight_ih_l{}", layer), weight_ih, initial});
    list.push_back({fmt::format("weight_hh_l{}", layer), weight_hh, initial});
    list.push_back({fmt::format("bias_ih_l{}", layer), gates, initial});
    list.push_back({fmt::format("bias_hh_l{}", layer), gates, initial});
  }
  return list;
}

}  // namespace troupe::kernels
