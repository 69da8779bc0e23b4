#include "kernels/cpu/internal/gemm.hpp"

#include <oneapi/dnnl/dnnl.h>

namespace troupe::kernels::cpu {

bool gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const Matrix& a,
          const Matrix& b, float beta, float* to, std::int64_t stride) noexcept {
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data,
                    a.stride, b.data, b.stride, beta, to, stride) == dnnl_success;
}

}  // namespace troupe::kernels::cpu
