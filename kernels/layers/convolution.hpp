#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Cross-correlation (what the field calls convolution) with a square window.
/// Parameters `NAME.weight` [out, in / groups, kernel, kernel] and `NAME.bias` [out].
struct Convolution {
  std::string name;
  std::int64_t out_channels = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;  ///< both numbers of channels are multiples of it
  bool bias = true;
  std::optional<Initial> initial = {};       ///< of the weight; else by fan-in
  std::optional<Initial> initial_bias = {};  ///< else by fan-in

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
