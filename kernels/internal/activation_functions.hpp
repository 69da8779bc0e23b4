#pragma once

#include "kernels/host_device.hpp"
#include "kernels/internal/wide_math.hpp"

// Functions of each element, each with its derivative, which is taken of the input x or of the
// output y.
namespace troupe::kernels {

struct GeluTanh {
  static constexpr float kSlope = 2.0f * 0.7978845608028654f;  // 2 sqrt(2 / pi)
  static constexpr float kCube = 0.044715f;
  // (1 + tanh(u)) / 2 = sigmoid(2 u).
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float of(float x) {
    return x * wide::sigmoid(kSlope * (x + kCube * (x * x * x)));
  }
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float slope(float x) {
    const float gate = wide::sigmoid(kSlope * (x + kCube * (x * x * x)));
    return gate + x * (gate * (1.0f - gate)) * (kSlope * (1.0f + 3.0f * kCube * (x * x)));
  }
};

struct GeluErf {
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float of(float x) {
    return x * (0.5f + 0.5f * wide::erf(x * 0.7071067811865476f));
  }
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float slope(float x) {
    constexpr float kDensity = 0.3989422804014327f;  // 1 / sqrt(2 pi)
    return (0.5f + 0.5f * wide::erf(x * 0.7071067811865476f)) +
           x * (kDensity * wide::exp(-0.5f * (x * x)));
  }
};

struct SiluOf {
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float of(float x) {
    return x * wide::sigmoid(x);
  }
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float slope(float x) {
    const float gate = wide::sigmoid(x);
    return gate + x * (gate * (1.0f - gate));
  }
};

struct SigmoidOf {
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float of(float x) { return wide::sigmoid(x); }
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float slope(float y) { return y * (1.0f - y); }
};

struct TanhOf {
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float of(float x) { return wide::tanh(x); }
  [[gnu::always_inline]] TROUPE_HOST_DEVICE static float slope(float y) { return 1.0f - y * y; }
};

}  // namespace troupe::kernels
