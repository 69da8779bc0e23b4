#pragma once

#include <bit>
#include <cstdint>

#include "kernels/host_device.hpp"

// Functions of one float for loops over many (TROUPE_WIDE_LOOP): no branch and no call, so that
// compilers vectorise them, and only +, -, *, / and bits in a fixed order, so that every machine
// and every width gives the same bits. NaN stays NaN.

// Says that a loop's iterations do not depend on each other: pointers are the same or apart.
#if defined(__clang__)
#define TROUPE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TROUPE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define TROUPE_INDEPENDENT
#endif

namespace troupe::kernels::wide {

/// e^x within 2 units in the last place; 0 below -87.3, and that of 88 above 88.
[[gnu::always_inline]] TROUPE_HOST_DEVICE inline float exp(float x) {
  // Moshier, Cephes, "expf": x = k ln2 + r, and a polynomial for e^r.
  constexpr float kLeast = -87.3f;
  constexpr float kGreatest = 88.0f;
  constexpr float kLn2High = 0.693359375f;  // nine bits: multiples are exact
  constexpr float kLn2Low = -2.12194440e-4f;
  // Added, it leaves the nearest whole number in the last bits.
  constexpr float kRound = 0x1.8p23f;
  const float limited = x < kLeast ? kLeast : x > kGreatest ? kGreatest : x;
  const float rounded = limited * 1.44269504088896341f + kRound;
  const float k = rounded - kRound;
  const float r = (limited - k * kLn2High) - k * kLn2Low;
  float series = 1.9875691500e-4f;
  series = series * r + 1.3981999507e-3f;
  series = series * r + 8.3334519073e-3f;
  series = series * r + 4.1665795894e-2f;
  series = series * r + 1.6666665459e-1f;
  series = series * r + 5.0000001201e-1f;
  const float power = (series * (r * r) + r) + 1.0f;
  const std::uint32_t exponent =
      std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(kRound) + 127u;
  const float result = power * std::bit_cast<float>(exponent << 23);
  return x < kLeast ? 0.0f : result;
}

/// 1 / (1 + e^-x) within 4 units in the last place.
[[gnu::always_inline]] TROUPE_HOST_DEVICE inline float sigmoid(float x) {
  return 1.0f / (1.0f + exp(-x));
}

/// The hyperbolic tangent within 4 units in the last place.
[[gnu::always_inline]] TROUPE_HOST_DEVICE inline float tanh(float x) {
  // A rational minimax approximation, odd over even: Eigen, "ptanh_float". Beyond the limits the
  // result rounds to 1.
  constexpr float kLimit = 7.90531110763549805f;
  const float a = x < -kLimit ? -kLimit : x > kLimit ? kLimit : x;
  const float square = a * a;
  float top = -2.76076847742355e-16f;
  top = top * square + 2.00018790482477e-13f;
  top = top * square + -8.60467152213735e-11f;
  top = top * square + 5.12229709037114e-08f;
  top = top * square + 1.48572235717979e-05f;
  top = top * square + 6.37261928875436e-04f;
  top = top * square + 4.89352455891786e-03f;
  float bottom = 1.19825839466702e-06f;
  bottom = bottom * square + 1.18534705686654e-04f;
  bottom = bottom * square + 2.26843463243900e-03f;
  bottom = bottom * square + 4.89352518554385e-03f;
  return a * top / bottom;
}

/// The error function within 2^-21.
[[gnu::always_inline]] TROUPE_HOST_DEVICE inline float erf(float x) {
  // As tanh: Eigen, "erf" of float.
  constexpr float kLimit = 4.0f;
  const float a = x < -kLimit ? -kLimit : x > kLimit ? kLimit : x;
  const float square = a * a;
  float top = -2.72614225801306e-10f;
  top = top * square + 2.77068142495902e-08f;
  top = top * square + -2.10102402082508e-06f;
  top = top * square + -5.69250639462346e-05f;
  top = top * square + -7.34990630326855e-04f;
  top = top * square + -2.95459980854025e-03f;
  top = top * square + -1.60960333262415e-02f;
  float bottom = -1.45660718464996e-05f;
  bottom = bottom * square + -2.13374055278905e-04f;
  bottom = bottom * square + -1.68282697438203e-03f;
  bottom = bottom * square + -7.37332916720468e-03f;
  bottom = bottom * square + -1.42647390514189e-02f;
  return a * top / bottom;
}

}  // namespace troupe::kernels::wide
