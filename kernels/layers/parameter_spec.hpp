#pragma once

#include <cstdint>
#include <string>

#include "kernels/shape.hpp"

namespace troupe::kernels {

/// What a parameter is before the first step.
struct Initial {
  enum class Kind : std::uint8_t {
    constant,  ///< `value`
    uniform,   ///< in [-value, value]
    normal,    ///< mean 0, deviation `value`
  };
  Kind kind = Kind::constant;
  float value = 0.0f;

  static Initial constant(float value) { return {Kind::constant, value}; }
  static Initial uniform(float bound) { return {Kind::uniform, bound}; }
  static Initial normal(float deviation) { return {Kind::normal, deviation}; }
  /// PyTorch's default for weights and biases of layers with `fan_in` inputs per output: Kaiming
  /// uniform with a = sqrt(5), which is a bound of 1 / sqrt(fan_in).
  static Initial by_fan_in(std::int64_t fan_in);
  /// Normal with deviation sqrt(2 / fan_out): He, Zhang, Ren, Sun, "Delving deep into rectifiers"
  /// (2015), what ResNets start from.
  static Initial by_fan_out(std::int64_t fan_out);

  bool operator==(const Initial&) const = default;
};

/// What changes a parameter.
enum class ParameterKind : std::uint8_t {
  trained,    ///< the optimizer, by the gradient
  statistic,  ///< a mean over batches: its "gradient" is what a step's batch adds to it
};

/// A parameter as its layer declares it; the model puts the layer's name in front.
struct ParameterSpec {
  std::string name;
  Shape shape;
  Initial initial;
  ParameterKind kind = ParameterKind::trained;
  /// statistic: the share of the newest batch in the mean.
  float momentum = 0.0f;
  /// The full name of an earlier layer's parameter of this shape that this one is, if it is none of
  /// its own: then all but the shape is that one's.
  std::string tied_to = {};
};

}  // namespace troupe::kernels
