#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias on [..., features], with mean and
/// (biased) variance of each row of features. Ba, Kiros, Hinton, "Layer normalization" (2016).
/// Parameters `NAME.weight` and `NAME.bias`, [features].
struct LayerNorm {
  std::string name;
  float epsilon = 1e-5f;

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

/// y = x / sqrt(mean of x^2 + epsilon) * weight on [..., features], with the mean of each row of
/// features. Zhang, Sennrich, "Root mean square layer normalization" (2019).
/// Parameter `NAME.weight`, [features].
struct RmsNorm {
  std::string name;
  float epsilon = 1e-6f;

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
