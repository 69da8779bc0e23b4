#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// What a batch norm adds up in a pass, and over all ranks if it is synchronized. With n values x
/// of a channel c, and the gradients dy of what they became:
///
///     [n, sum x of each c, sum x^2 of each c]                                  forward
///     [n, sum dy of each c, sum dy (x - mean) / sqrt(variance + epsilon)]      backward
///
/// In double, in which the difference of the mean of squares and the square of the mean is as good
/// as f32 needs.
struct BatchNormSums {
  double* values;
  std::size_t channels;

  static std::size_t width(std::size_t channels) { return 1 + 2 * channels; }
  /// Error: `invalid_argument` naming `layer` for a batch without a variance.
  static Status check(std::string_view layer, std::span<const double> values);
  double& count() const { return values[0]; }
  double* first() const { return values + 1; }
  double* second() const { return values + 1 + channels; }
};

}  // namespace troupe::kernels
