#pragma once

#include <cstddef>
#include <cstring>

// Sums over a row in one order of additions, whatever the width of the machine's registers: sixteen
// lanes, each over every sixteenth element, which are then added in halves. For bodies of
// TROUPE_WIDE_LOOP.
namespace troupe::kernels::wide {

// What compilers vectorise as eight floats, and take apart where registers are shorter.
using Floats = float __attribute__((vector_size(32)));
inline constexpr std::size_t kFloats = sizeof(Floats) / sizeof(float);
inline constexpr std::size_t kRowLanes = 2 * kFloats;

struct RowSum {
  Floats low{}, high{};
  float rest = 0.0f;  ///< of what does not fill the lanes

  [[gnu::always_inline]] float total() const {
    const Floats sum = low + high;
    const float quarter[4] = {sum[0] + sum[4], sum[1] + sum[5], sum[2] + sum[6], sum[3] + sum[7]};
    return ((quarter[0] + quarter[2]) + (quarter[1] + quarter[3])) + rest;
  }
};

/// The sum of x[i].
[[gnu::always_inline]] inline float sum(const float* x, std::size_t n) {
  RowSum sum;
  std::size_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) {
    Floats a, b;
    std::memcpy(&a, x + i, sizeof a);
    std::memcpy(&b, x + i + kFloats, sizeof b);
    sum.low += a;
    sum.high += b;
  }
  for (; i < n; ++i) sum.rest += x[i];
  return sum.total();
}

/// The sum of a[i] b[i].
[[gnu::always_inline]] inline float dot(const float* a, const float* b, std::size_t n) {
  RowSum sum;
  std::size_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) {
    Floats a0, a1, b0, b1;
    std::memcpy(&a0, a + i, sizeof a0);
    std::memcpy(&a1, a + i + kFloats, sizeof a1);
    std::memcpy(&b0, b + i, sizeof b0);
    std::memcpy(&b1, b + i + kFloats, sizeof b1);
    sum.low += a0 * b0;
    sum.high += a1 * b1;
  }
  for (; i < n; ++i) sum.rest += a[i] * b[i];
  return sum.total();
}

/// The sum of (x[i] - mean)^2.
[[gnu::always_inline]] inline float squares(const float* x, float mean, std::size_t n) {
  RowSum sum;
  std::size_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) {
    Floats a, b;
    std::memcpy(&a, x + i, sizeof a);
    std::memcpy(&b, x + i + kFloats, sizeof b);
    a -= mean;
    b -= mean;
    sum.low += a * a;
    sum.high += b * b;
  }
  for (; i < n; ++i) sum.rest += (x[i] - mean) * (x[i] - mean);
  return sum.total();
}

/// The greatest x[i] of at least one; what it is with a NaN among them is not said.
[[gnu::always_inline]] inline float greatest(const float* x, std::size_t n) {
  float best = x[0];
  std::size_t i = 0;
  if (n >= kRowLanes) {
    Floats low, high;
    std::memcpy(&low, x, sizeof low);
    std::memcpy(&high, x + kFloats, sizeof high);
    for (i = kRowLanes; i + kRowLanes <= n; i += kRowLanes) {
      Floats a, b;
      std::memcpy(&a, x + i, sizeof a);
      std::memcpy(&b, x + i + kFloats, sizeof b);
      low = a > low ? a : low;
      high = b > high ? b : high;
    }
    low = high > low ? high : low;
    for (std::size_t lane = 0; lane < kFloats; ++lane) best = low[lane] > best ? low[lane] : best;
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

}  // namespace troupe::kernels::wide
