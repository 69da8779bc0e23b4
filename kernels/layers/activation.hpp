#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// max(x, 0); NaN stays NaN.
struct Relu {
  std::string describe() const { return "relu"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape>) const;
};

}  // namespace troupe::kernels
