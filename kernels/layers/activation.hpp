#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

// Functions of each element.

/// max(x, 0); NaN stays NaN.
struct Relu {
  std::string describe() const { return "relu"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

/// x times the normal distribution's cumulative function. Hendrycks, Gimpel, "Gaussian error linear
/// units" (2016).
struct Gelu {
  enum class Form : std::uint8_t {
    tanh,  ///< x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which GPT-2 uses
    erf,   ///< x / 2 (1 + erf(x / sqrt(2)))
  };
  Form form = Form::tanh;

  std::string describe() const { return "gelu"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

/// x / (1 + e^-x).
struct Silu {
  std::string describe() const { return "silu"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

/// 1 / (1 + e^-x).
struct Sigmoid {
  std::string describe() const { return "sigmoid"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

/// The hyperbolic tangent.
struct Tanh {
  std::string describe() const { return "tanh"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
