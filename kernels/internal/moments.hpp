#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "kernels/optimizer.hpp"

namespace troupe::kernels {

/// The state of adam, adamw and lamb, as torch.optim calls it.
inline constexpr std::array<std::string_view, 2> kMomentNames = {"exp_avg", "exp_avg_sq"};

/// base^exponent by repeated squaring: only products, in a fixed order.
inline double power(double base, std::uint64_t exponent) noexcept {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if ((exponent & 1) != 0) result *= base;
  return result;
}

/// What corrects moments that began as zeros (Kingma and Ba, "Adam", 2014, section 3).
struct BiasCorrection {
  BiasCorrection(const OptimizerOptions& options, std::uint64_t update) noexcept
      : mean(1 / (1 - power(options.beta1, update))),
        root(1 / std::sqrt(1 - power(options.beta2, update))) {}

  double mean;  ///< factor of the mean
  double root;  ///< factor of the root of the mean square
};

/// What moves the moments of a step, as floats.
struct MomentFactors {
  MomentFactors(const OptimizerOptions& options, float scale) noexcept
      : gradient_scale(scale),
        fresh_mean(static_cast<float>(1 - options.beta1)),
        beta2(static_cast<float>(options.beta2)),
        fresh_square(static_cast<float>(1 - options.beta2)) {}

  /// Of one element with gradient g; in bodies of TROUPE_WIDE_LOOP.
  [[gnu::always_inline]] void move(float g, float& mean, float& square) const {
    mean += fresh_mean * (g - mean);
    square = beta2 * square + fresh_square * (g * g);
  }

  float gradient_scale;
  float fresh_mean;  ///< 1 - beta1
  float beta2, fresh_square;
};

}  // namespace troupe::kernels
