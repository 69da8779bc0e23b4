#include "actors/collective/sum.hpp"

// Each loop is compiled twice and chosen at run time: the baseline of x86-64 knows 128-bit vectors
// only. No fused or reordered arithmetic in either (-ffp-contract=off, no -ffast-math), so both
// give the same bits. Plain branches, not ifunc: its resolvers run before sanitizers are set up.

#if defined(__clang__)
#define TROUPE_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define TROUPE_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace troupe::collective {
namespace {

[[gnu::always_inline]] inline void add2_loop(float* out, const float* a, const float* b,
                                             std::size_t count) noexcept {
  TROUPE_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

[[gnu::always_inline]] inline void add3_left_loop(float* out, const float* a, const float* b,
                                                  const float* c, std::size_t count) noexcept {
  TROUPE_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < count; ++i) out[i] = (a[i] + b[i]) + c[i];
}

[[gnu::always_inline]] inline void add3_right_loop(float* out, const float* a, const float* b,
                                                   const float* c, std::size_t count) noexcept {
  TROUPE_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + (b[i] + c[i]);
}

[[gnu::always_inline]] inline void add4_loop(float* out, const float* a, const float* b,
                                             const float* c, const float* d,
                                             std::size_t count) noexcept {
  TROUPE_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < count; ++i) out[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

#if defined(__x86_64__)
#define TROUPE_AVX2 [[gnu::target("avx2")]]
TROUPE_AVX2 void add2_avx2(float* out, const float* a, const float* b, std::size_t n) noexcept {
  add2_loop(out, a, b, n);
}
TROUPE_AVX2 void add3_left_avx2(float* out, const float* a, const float* b, const float* c,
                                std::size_t n) noexcept {
  add3_left_loop(out, a, b, c, n);
}
TROUPE_AVX2 void add3_right_avx2(float* out, const float* a, const float* b, const float* c,
                                 std::size_t n) noexcept {
  add3_right_loop(out, a, b, c, n);
}
TROUPE_AVX2 void add4_avx2(float* out, const float* a, const float* b, const float* c,
                           const float* d, std::size_t n) noexcept {
  add4_loop(out, a, b, c, d, n);
}
const bool kHasAvx2 = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0;
}();
#define TROUPE_DISPATCH(name, ...) \
  if (kHasAvx2) return name##_avx2(__VA_ARGS__)
#else
#define TROUPE_DISPATCH(name, ...) static_cast<void>(0)
#endif

}  // namespace

void add2(float* out, const float* a, const float* b, std::size_t count) noexcept {
  TROUPE_DISPATCH(add2, out, a, b, count);
  add2_loop(out, a, b, count);
}

void add3_left(float* out, const float* a, const float* b, const float* c,
               std::size_t count) noexcept {
  TROUPE_DISPATCH(add3_left, out, a, b, c, count);
  add3_left_loop(out, a, b, c, count);
}

void add3_right(float* out, const float* a, const float* b, const float* c,
                std::size_t count) noexcept {
  TROUPE_DISPATCH(add3_right, out, a, b, c, count);
  add3_right_loop(out, a, b, c, count);
}

void add4(float* out, const float* a, const float* b, const float* c, const float* d,
          std::size_t count) noexcept {
  TROUPE_DISPATCH(add4, out, a, b, c, d, count);
  add4_loop(out, a, b, c, d, count);
}

}  // namespace troupe::collective
