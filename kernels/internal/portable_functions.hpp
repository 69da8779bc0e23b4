#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/host_device.hpp"

// The bodies of portable_math.hpp's functions, for sources that are compiled without contraction
// (CUDA's among them); others call those.
namespace troupe::kernels::portable {

inline constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 33 bits: multiples to 2^11 are exact
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

TROUPE_HOST_DEVICE inline double exp(double x) noexcept {
  if (std::isnan(x)) return x;
  if (x < -745.0) return 0.0;
  // x = k ln2 + r with |r| <= ln2/2; then Taylor's series for e^r (the next term is below 2^-58).
  constexpr double kInverseFactorials[] = {1.0,
                                           1.0,
                                           1.0 / 2,
                                           1.0 / 6,
                                           1.0 / 24,
                                           1.0 / 120,
                                           1.0 / 720,
                                           1.0 / 5040,
                                           1.0 / 40320,
                                           1.0 / 362880,
                                           1.0 / 3628800,
                                           1.0 / 39916800,
                                           1.0 / 479001600,
                                           1.0 / 6227020800.0};
  const int k = static_cast<int>(x * 1.4426950408889634 - 0.5);  // towards zero: to the nearest
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 0.0;
  for (int n = 13; n >= 0; --n) sum = sum * r + kInverseFactorials[n];
  if (k < -1022) return std::ldexp(sum, k);
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + k) << 52);
}

TROUPE_HOST_DEVICE inline double log(double x) noexcept {
  // x = m 2^k with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s), s = (m-1)/(m+1), |s| < 0.172.
  int k = 0;
  double m = std::frexp(x, &k);
  if (m < 0.70710678118654752) {
    m *= 2;
    --k;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double series = 0.0;
  for (int n = 23; n > 0; n -= 2) series = series * square + 1.0 / n;
  return k * kLn2High + (2 * s * series + k * kLn2Low);
}

}  // namespace troupe::kernels::portable
