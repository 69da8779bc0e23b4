#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// [channels, height, width] to [channels * height * width].
struct Flatten {
  std::string describe() const { return "flatten"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

/// The same elements in another shape, in row-major order.
struct Reshape {
  Shape shape;

  std::string describe() const { return "reshape"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

/// The sum of two inputs of one shape, element by element.
struct Add {
  std::string describe() const { return "add"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

/// Inputs one after the other along an axis of a sample: [2, 4, 4] and [3, 4, 4] along axis 0 are
/// [5, 4, 4]. All other axes are alike.
struct Concat {
  std::int64_t axis = 0;

  std::string describe() const { return "concat"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
