#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// y = W x + b on the last axis: [..., in] to [..., out]. Parameters `NAME.weight` [out, in] and
/// `NAME.bias` [out].
struct Linear {
  std::string name;
  std::int64_t out_features = 1;
  bool bias = true;
  std::optional<Initial> initial = {};       ///< of the weight; else by fan-in
  std::optional<Initial> initial_bias = {};  ///< else by fan-in
  /// The weight of an earlier linear layer or embedding, by its full name ("wte.weight"), that this
  /// one uses instead of a weight of its own. Its gradient is the sum over all that use it. Press,
  /// Wolf, "Using the output embedding to improve language models" (2017).
  std::string tied_to = {};

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
