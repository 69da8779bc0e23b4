#include "kernels/cpu/internal/lanes.hpp"

// Compiled for AVX2 and FMA; nothing here may run before the CPU was asked for them.
#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

namespace troupe::kernels::cpu {

namespace {

using Vector = __m256;
using Mask = __m256i;
using Chosen = __m256i;  // a 32-bit number for each lane

Vector load(const float* from) {
  return _mm256_loadu_ps(from);
}
void store(float* to, Vector v) {
  _mm256_storeu_ps(to, v);
}
Vector broadcast(float value) {
  return _mm256_set1_ps(value);
}
Vector zero() {
  return _mm256_setzero_ps();
}
Vector fma(Vector a, Vector b, Vector sum) {
  return _mm256_fmadd_ps(a, b, sum);
}
Vector add(Vector a, Vector b) {
  return _mm256_add_ps(a, b);
}

// "Not less or equal" is true for NaN; `b` being NaN must not count.
Mask greater_or_nan(Vector a, Vector b) {
  return _mm256_castps_si256(
      _mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ), _mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
}
Mask positive_or_nan(Vector a) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_NLE_UQ));
}
Mask equal(Chosen a, Chosen b) {
  return _mm256_cmpeq_epi32(a, b);
}
Vector select(Mask mask, Vector a, Vector b) {
  return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(mask));
}
Chosen select(Mask mask, Chosen a, Chosen b) {
  return _mm256_blendv_epi8(b, a, mask);
}
Chosen chosen_constant(int value) {
  return _mm256_set1_epi32(value);
}
Chosen load_chosen(const std::uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
void store_chosen(std::uint8_t* to, Chosen chosen) {
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}

void transpose(Vector (&rows)[8]) {
  Vector pairs[8];
  for (int n = 0; n < 4; ++n) {
    pairs[2 * n] = _mm256_unpacklo_ps(rows[2 * n], rows[2 * n + 1]);
    pairs[2 * n + 1] = _mm256_unpackhi_ps(rows[2 * n], rows[2 * n + 1]);
  }
  Vector fours[8];
  for (int half = 0; half < 8; half += 4) {
    fours[half] = _mm256_shuffle_ps(pairs[half], pairs[half + 2], 0x44);
    fours[half + 1] = _mm256_shuffle_ps(pairs[half], pairs[half + 2], 0xEE);
    fours[half + 2] = _mm256_shuffle_ps(pairs[half + 1], pairs[half + 3], 0x44);
    fours[half + 3] = _mm256_shuffle_ps(pairs[half + 1], pairs[half + 3], 0xEE);
  }
  for (int n = 0; n < 4; ++n) {
    rows[n] = _mm256_permute2f128_ps(fours[n], fours[n + 4], 0x20);
    rows[n + 4] = _mm256_permute2f128_ps(fours[n], fours[n + 4], 0x31);
  }
}

#include "kernels/cpu/internal/lane_loops.ipp"

}  // namespace

const LaneLoops* avx2_lane_loops() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kLoops : nullptr;
}

}  // namespace troupe::kernels::cpu

#else

namespace troupe::kernels::cpu {
const LaneLoops* avx2_lane_loops() noexcept {
  return nullptr;
}
}  // namespace troupe::kernels::cpu

#endif
