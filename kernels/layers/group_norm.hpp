#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias on [channels, ...], with mean and
/// (biased) variance of each run of channels / groups channels of a sample, and weight and bias of
/// each channel. Wu, He, "Group normalization" (2018).
/// Parameters `NAME.weight` and `NAME.bias`, [channels].
struct GroupNorm {
  std::string name;
  std::int64_t groups = 1;  ///< the number of channels is a multiple of it
  float epsilon = 1e-5f;

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
