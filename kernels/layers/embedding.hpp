#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/dtype.hpp"
#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// A learned vector for each token: ids [..., tokens], i32 and each 0..vocabulary-1, to
/// [..., tokens, width]. Parameter `NAME.weight` [vocabulary, width].
struct Embedding {
  static constexpr DType kInput = DType::i32;

  std::string name;
  std::int64_t vocabulary = 1;
  std::int64_t width = 1;
  Initial initial = Initial::normal(1.0f);

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape>) const;
};

/// Adds a learned vector for each position: y[t] = x[t] + weight[t] on [tokens, width].
/// Parameter `NAME.weight` [context, width].
struct PositionEmbedding {
  std::string name;
  std::int64_t context = 1;  ///< positions that there are vectors for; at least the tokens
  Initial initial = Initial::normal(1.0f);

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
