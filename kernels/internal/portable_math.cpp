#include "kernels/internal/portable_math.hpp"

#include "kernels/internal/portable_functions.hpp"

namespace troupe::kernels {

namespace {
constexpr double kTwoPi = 6.283185307179586476925;
}  // namespace

double portable_exp(double x) noexcept {
  return portable::exp(x);
}

double portable_log(double x) noexcept {
  return portable::log(x);
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
