#include "kernels/cuda/internal/matmul.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::kernels::cuda {

namespace {

// What NVIDIA recommends for Hopper (cuBLAS documentation, cublasSetWorkspace).
constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;

// cuBLASLt is column-major. A row-major matrix is the transpose of a column-major one in the same
// memory, and c = a b is c^T = b^T a^T: so b is what it calls A, and a what it calls B.

cudaDataType_t blas_type(DType type) {
  switch (type) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

template <class Value>
Status set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name, Value value) {
  return check(cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
}
template <class Value>
Status set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, Value value) {
  return check(cublasLtMatrixLayoutSetAttribute(layout, name, &value, sizeof value),
               "cublasLtMatrixLayoutSetAttribute");
}
template <class Value>
Status set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
           Value value) {
  return check(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
}

}  // namespace

std::uint32_t alignment_at(std::int64_t floats) noexcept {
  constexpr std::int64_t kMost = 64;
  const std::int64_t bytes = floats * static_cast<std::int64_t>(sizeof(float));
  // The lowest bit that is set.
  return static_cast<std::uint32_t>(bytes == 0 ? kMost : std::min(kMost, bytes & -bytes));
}

Result<Matmul::Operation> Matmul::make_operation(const MatmulShape& shape) {
  cublasLtMatmulDesc_t made = nullptr;
  TROUPE_TRY(check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                   "cublasLtMatmulDescCreate"));
  Operation operation(made);
  const auto transpose = [](const MatrixLayout& matrix) -> std::int32_t {
    return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  TROUPE_TRY(set(made, CUBLASLT_MATMUL_DESC_TRANSA, transpose(shape.b)));
  TROUPE_TRY(set(made, CUBLASLT_MATMUL_DESC_TRANSB, transpose(shape.a)));
  return operation;
}

Result<Matmul::Layout> Matmul::make_layout(std::int64_t rows, std::int64_t columns,
                                           const MatrixLayout& matrix, std::int64_t batch,
                                           DType type) {
  if (matrix.transposed) std::swap(rows, columns);  // what lies there
  cublasLtMatrixLayout_t made = nullptr;
  TROUPE_TRY(
      check(cublasLtMatrixLayoutCreate(&made, blas_type(type), static_cast<std::uint64_t>(columns),
                                       static_cast<std::uint64_t>(rows), matrix.stride),
            "cublasLtMatrixLayoutCreate"));
  Layout layout(made);
  if (batch > 1) {
    TROUPE_TRY(set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch)));
    TROUPE_TRY(set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride));
  }
  return layout;
}

Result<Matmul::Preference> Matmul::make_preference(const MatmulShape& shape) {
  cublasLtMatmulPreference_t made = nullptr;
  TROUPE_TRY(check(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate"));
  Preference preference(made);
  TROUPE_TRY(set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace));
  TROUPE_TRY(set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                 static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE)));
  TROUPE_TRY(set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.b.alignment));
  TROUPE_TRY(set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.a.alignment));
  TROUPE_TRY(set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.c.alignment));
  TROUPE_TRY(set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.c.alignment));
  return preference;
}

Status Matmul::pick_algorithm(Context& context, const MatmulShape& shape) {
  constexpr int kAsked = 8;
  TROUPE_ASSIGN(const Preference preference, make_preference(shape));
  cublasLtMatmulHeuristicResult_t found[kAsked] = {};
  int count = 0;
  const Status asked = check(
      cublasLtMatmulAlgoGetHeuristic(context.blas(), operation_.get(), b_.get(), a_.get(), c_.get(),
                                     c_.get(), preference.get(), kAsked, found, &count),
      "cublasLtMatmulAlgoGetHeuristic");
  if (!asked.ok() && asked.code() != Code::not_supported) return asked;
  // The first is the one expected to be fastest.
  for (int i = 0; i < count; ++i) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    algorithm_ = found[i].algo;
    workspace_bytes_ = found[i].workspaceSize;
    return {};
  }
  return {Code::not_supported,
          fmt::format("cuBLASLt has no algorithm for [{}, {}] times [{}, {}] in {}, {} times",
                      shape.m, shape.k, shape.k, shape.n, to_string(shape.factors), shape.batch)};
}

Result<Matmul> Matmul::make(Context& context, const MatmulShape& shape, ScratchPlaces scratch) {
  Matmul made;
  made.alpha_ = shape.alpha;
  TROUPE_ASSIGN(made.operation_, make_operation(shape));
  TROUPE_ASSIGN(made.a_, make_layout(shape.m, shape.k, shape.a, shape.batch, shape.factors));
  TROUPE_ASSIGN(made.b_, make_layout(shape.k, shape.n, shape.b, shape.batch, shape.factors));
  TROUPE_ASSIGN(made.c_, make_layout(shape.m, shape.n, shape.c, shape.batch, DType::f32));
  TROUPE_TRY(made.pick_algorithm(context, shape));
  made.workspace_ = scratch.add(made.workspace_bytes_);
  return made;
}

Status Matmul::enqueue(Context& context, cudaStream_t stream, const ScratchPlaces& scratch,
                       const void* a, const void* b, float beta, float* c) const {
  return check(cublasLtMatmul(context.blas(), operation_.get(), &alpha_, b, b_.get(), a, a_.get(),
                              &beta, c, c_.get(), c, c_.get(), &algorithm_, scratch.at(workspace_),
                              workspace_bytes_, stream),
               "cublasLtMatmul");
}

}  // namespace troupe::kernels::cuda
