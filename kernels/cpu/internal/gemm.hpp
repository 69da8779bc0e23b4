#pragma once

#include <cstdint>

namespace troupe::kernels::cpu {

/// A row-major matrix in memory whose rows begin `stride` floats apart.
struct Matrix {
  const float* data;
  std::int64_t stride;
  bool transposed = false;  ///< what is meant is the transpose of what lies there
};

/// to[m, n] = alpha a[m, k] b[k, n] + beta to; `stride` is that of `to`. On as many threads as
/// OpenMpThreads says, or on the calling one inside of run_parts. False if memory ran out.
[[nodiscard]] bool gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                        const Matrix& a, const Matrix& b, float beta, float* to,
                        std::int64_t stride) noexcept;

}  // namespace troupe::kernels::cpu
