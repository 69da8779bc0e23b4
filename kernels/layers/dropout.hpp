#pragma once

#include <span>
#include <string>

#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// In training zeroes each element with `probability`, and divides the others by 1 - probability;
/// at inference does nothing. Which ones is a pure function of the pass's key
/// (kernels/pass_key.hpp), the layer's place in the model and the element's in the batch.
/// Srivastava et al., "Dropout" (2014).
struct Dropout {
  float probability = 0.1f;  ///< 0 to below 1

  std::string describe() const { return "dropout"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
