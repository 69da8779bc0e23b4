#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// [channels, height, width] to [channels * height * width].
struct Flatten {
  std::string describe() const { return "flatten"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape>) const;
};

/// The sum of two inputs of one shape, element by element.
struct Add {
  std::string describe() const { return "add"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape>) const;
};

}  // namespace troupe::kernels
