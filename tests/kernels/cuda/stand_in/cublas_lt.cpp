#include <cstdint>
#include <cstring>
#include <limits>

#include <cublasLt.h>

#include "kernels/short_floats.hpp"
#include "tests/kernels/cuda/stand_in/stand_in.hpp"
#include "tests/kernels/cuda/stand_in/stream.hpp"

using namespace troupe::stand_in;  // NOLINT

namespace {

struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
};

// What an algorithm remembers of what it was made for.
struct Algorithm {
  std::uint32_t alignment_a, alignment_b, alignment_c, alignment_d;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

Operation* of(cublasLtMatmulDesc_t it) {
  return reinterpret_cast<Operation*>(it);
}
Matrix* of(cublasLtMatrixLayout_t it) {
  return reinterpret_cast<Matrix*>(it);
}
MatmulAsked* of(cublasLtMatmulPreference_t it) {
  return reinterpret_cast<MatmulAsked*>(it);
}

template <class T>
cublasStatus_t take(T& to, const void* from, size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/// m, n, k if the matrices fit.
struct Sizes {
  bool fit;
  std::uint64_t m, n, k;
};
Sizes sizes(const Operation& op, const Matrix& a, const Matrix& b, const Matrix& c,
            const Matrix& d) {
  const bool ta = op.transpose_a == CUBLAS_OP_T, tb = op.transpose_b == CUBLAS_OP_T;
  const std::uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns;
  const std::uint64_t n = tb ? b.rows : b.columns;
  bool fit = (tb ? b.columns : b.rows) == k;
  for (const Matrix* out : {&c, &d}) fit = fit && out->rows == m && out->columns == n;
  for (const Matrix* matrix : {&a, &b, &c, &d})
    fit = fit && matrix->batch == a.batch &&
          matrix->stride >= static_cast<std::int64_t>(matrix->rows);
  fit = fit && op.compute == CUBLAS_COMPUTE_32F && op.scale == CUDA_R_32F && a.type == b.type &&
        (a.type == CUDA_R_32F || a.type == CUDA_R_16BF || a.type == CUDA_R_16F) &&
        c.type == CUDA_R_32F && d.type == CUDA_R_32F;
  return {fit, m, n, k};
}

float value_at(const void* matrix, cudaDataType_t type, std::int64_t at) {
  if (type == CUDA_R_32F) return static_cast<const float*>(matrix)[at];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(matrix)[at];
  return type == CUDA_R_16F ? troupe::kernels::f16_value(bits) : troupe::kernels::bf16_value(bits);
}

bool aligned(const void* pointer, std::uint32_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

/// d = scale a b + keep c, in plain loops.
void multiply(const Operation& op, const Matrix& A, const Matrix& B, const Matrix& C,
              const Matrix& D, const Sizes& size, float scale, float keep, const void* a,
              const void* b, const void* c, void* d) {
  const auto at = [](const Matrix& layout, std::int32_t batch, std::uint64_t row,
                     std::uint64_t column) {
    return batch * layout.batch_stride + static_cast<std::int64_t>(column) * layout.stride +
           static_cast<std::int64_t>(row);
  };
  for (std::int32_t batch = 0; batch < A.batch; ++batch)
    for (std::uint64_t m = 0; m < size.m; ++m)
      for (std::uint64_t n = 0; n < size.n; ++n) {
        float sum = 0.0f;
        for (std::uint64_t k = 0; k < size.k; ++k) {
          const bool ta = op.transpose_a == CUBLAS_OP_T, tb = op.transpose_b == CUBLAS_OP_T;
          sum += value_at(a, A.type, ta ? at(A, batch, k, m) : at(A, batch, m, k)) *
                 value_at(b, B.type, tb ? at(B, batch, n, k) : at(B, batch, k, n));
        }
        // With a beta of 0, c is not read: it may be no number.
        const float before =
            keep == 0.0f ? 0.0f : keep * static_cast<const float*>(c)[at(C, batch, m, n)];
        static_cast<float*>(d)[at(D, batch, m, n)] = scale * sum + before;
      }
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() {
  return 1;
}
const char* cublasLtGetStatusString(cublasStatus_t) {
  return "as the stand-in was told";
}
const char* cublasLtGetStatusName(cublasStatus_t) {
  return "CUBLAS_STATUS";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t it) {
  delete of(it);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t it,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t bytes) {
  if (name == CUBLASLT_MATMUL_DESC_TRANSA) return take(of(it)->transpose_a, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_TRANSB) return take(of(it)->transpose_b, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Matrix{type, rows, columns, stride});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t it) {
  delete of(it);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t it,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void* value, size_t bytes) {
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return take(of(it)->batch, value, bytes);
  if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    return take(of(it)->batch_stride, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new MatmulAsked{});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t it) {
  delete of(it);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t it,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t bytes) {
  MatmulAsked& asked = *of(it);
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(asked.most_workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return take(asked.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(asked.alignment_a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(asked.alignment_b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(asked.alignment_c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(asked.alignment_d, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference,
                                              int asked_count,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  *count = 0;
  if (!behaviour().has_algorithms) return CUBLAS_STATUS_NOT_SUPPORTED;
  MatmulAsked asked = *of(preference);
  asked.compute = of(operation)->compute;
  asked.scale = of(operation)->scale;
  asked.transpose_a = of(operation)->transpose_a;
  asked.transpose_b = of(operation)->transpose_b;
  asked.a = *of(a);
  asked.b = *of(b);
  asked.c = *of(c);
  asked.d = *of(d);
  record().matmuls.push_back(asked);
  if (!sizes(*of(operation), asked.a, asked.b, asked.c, asked.d).fit || asked_count < 2)
    return CUBLAS_STATUS_INVALID_VALUE;
  const Algorithm algorithm{asked.alignment_a, asked.alignment_b, asked.alignment_c,
                            asked.alignment_d};
  results[0].state = CUBLAS_STATUS_NOT_SUPPORTED;
  results[1].state = CUBLAS_STATUS_SUCCESS;
  results[1].workspaceSize = kWorkspace;
  std::memcpy(&results[1].algo, &algorithm, sizeof algorithm);
  *count = 2;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  const Operation op = *of(operation);
  const Matrix A = *of(a_layout), B = *of(b_layout), C = *of(c_layout), D = *of(d_layout);
  const Sizes size = sizes(op, A, B, C, D);
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (handle == nullptr || stream == nullptr || !size.fit || workspace_bytes < kWorkspace ||
      workspace == nullptr || !aligned(workspace, 16) || !aligned(a, algorithm.alignment_a) ||
      !aligned(b, algorithm.alignment_b) || !aligned(c, algorithm.alignment_c) ||
      !aligned(d, algorithm.alignment_d))
    return CUBLAS_STATUS_INVALID_VALUE;
  const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  enqueue(stream, [=] {
    std::memset(workspace, 0xff, workspace_bytes);
    ++record().matmul_calls;
    multiply(op, A, B, C, D, size, scale, keep, a, b, c, d);
    return true;
  });
  return CUBLAS_STATUS_SUCCESS;
}
}
