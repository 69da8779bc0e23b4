#include "kernels/layers/embedding.hpp"

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

std::string Embedding::describe() const {
  return fmt::format("embedding '{}'", name);
}

Result<Shape> Embedding::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_size(what, "vocabulary", vocabulary, 1));
  TROUPE_TRY(layers::require_size(what, "width", width, 1));
  TROUPE_TRY(layers::require_features(what, inputs[0]));
  std::vector<std::int64_t> dims(inputs[0].dims().begin(), inputs[0].dims().end());
  dims.push_back(width);
  if (dims.size() == Shape::kMaxRank)
    return Error{Code::shape_mismatch, fmt::format("{}: input {} has too many axes for one more",
                                                   what, to_string(inputs[0]))};
  return Shape::checked(dims);
}

Result<std::vector<ParameterSpec>> Embedding::parameters(std::span<const Shape>) const {
  return std::vector<ParameterSpec>{{"weight", Shape{vocabulary, width}, initial}};
}

std::string PositionEmbedding::describe() const {
  return fmt::format("position embedding '{}'", name);
}

Result<Shape> PositionEmbedding::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_size(what, "context", context, 1));
  TROUPE_TRY(layers::require_tokens(what, inputs[0]));
  if (inputs[0][0] > context)
    return Error{Code::shape_mismatch,
                 fmt::format("{}: input {} has more tokens than the context of {}", what,
                             to_string(inputs[0]), context)};
  return inputs[0];
}

Result<std::vector<ParameterSpec>> PositionEmbedding::parameters(
    std::span<const Shape> inputs) const {
  return std::vector<ParameterSpec>{{"weight", Shape{context, inputs[0][1]}, initial}};
}

}  // namespace troupe::kernels
