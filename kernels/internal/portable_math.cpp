#include "kernels/internal/portable_math.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace troupe::kernels {

namespace {
constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 33 bits: multiples up to 2^11 are exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kTwoPi = 6.283185307179586476925;
}  // namespace

double portable_exp(double x) noexcept {
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
  for (std::size_t n = std::size(kInverseFactorials); n-- > 0;)
    sum = sum * r + kInverseFactorials[n];
  if (k < -1022) return std::ldexp(sum, k);
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + k) << 52);
}

double portable_log(double x) noexcept {
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

double portable_cos_turns(double turns) noexcept {
  // Into the first eighth by symmetry, then Taylor's series there.
  double t = turns >= 0.5 ? 1.0 - turns : turns;
  const double sign = t > 0.25 ? -1.0 : 1.0;
  if (t > 0.25) t = 0.5 - t;
  const bool use_sine = t > 0.125;
  const double a = kTwoPi * (use_sine ? 0.25 - t : t);
  const double square = a * a;
  double sum = 1.0;
  // cos a = 1 - a^2/2 (1 - a^2/12 (...)), sin a = a (1 - a^2/6 (...)).
  for (int n = 20; n > 0; n -= 2)
    sum = 1.0 - sum * square / (use_sine ? n * (n + 1.0) : (n - 1.0) * n);
  return sign * (use_sine ? a * sum : sum);
}

}  // namespace troupe::kernels
