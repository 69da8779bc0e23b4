#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include <cublasLt.h>

#include "kernels/cuda/internal/context.hpp"
#include "kernels/dtype.hpp"
#include "kernels/internal/shared_scratch.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::cuda {

/// How a row-major matrix lies, or a batch of them.
struct MatrixLayout {
  std::int64_t stride;            ///< elements from one row to the next
  bool transposed = false;        ///< what is meant is the transpose of what lies there
  std::int64_t batch_stride = 0;  ///< elements from one matrix to the next
  /// What the address of the first one is always a multiple of, in bytes. Parameters, activations
  /// and scratch memory are aligned to 64.
  std::uint32_t alignment = 64;
};

/// The alignment of what lies `floats` behind something aligned to 64 bytes; of 0, that.
std::uint32_t alignment_at(std::int64_t floats) noexcept;

/// c[m, n] = alpha a[m, k] b[k, n] + beta c, `batch` times.
struct MatmulShape {
  std::int64_t m, n, k;
  MatrixLayout a, b, c;
  std::int64_t batch = 1;
  float alpha = 1.0f;
  DType factors = DType::f32;  ///< the type of a and b; c is f32
};

/// A product of matrices by cuBLASLt, with an algorithm picked once. Sums are in f32; factors in
/// f32 are multiplied as they are (no TF32).
///
/// Only algorithms that add up each element's products in one sequence are taken (no split of k):
/// the result is the same whenever it is computed again on a device of that kind.
///
/// Ownership: borrows context and scratch. Threads: one at a time.
class Matmul {
public:
  Matmul() = default;
  /// Its workspace lies behind the places that `scratch` has, where other products' may be too.
  /// Errors: `not_supported` if cuBLASLt has no algorithm, with the shape; as `check`.
  static Result<Matmul> make(Context& context, const MatmulShape& shape, ScratchPlaces scratch);

  /// `beta` is 0 or 1. With 0, what is in c is not read.
  Status enqueue(Context& context, cudaStream_t stream, const ScratchPlaces& scratch, const void* a,
                 const void* b, float beta, float* c) const;

private:
  struct Destroy {
    void operator()(cublasLtMatmulDesc_t it) const noexcept { cublasLtMatmulDescDestroy(it); }
    void operator()(cublasLtMatrixLayout_t it) const noexcept { cublasLtMatrixLayoutDestroy(it); }
    void operator()(cublasLtMatmulPreference_t it) const noexcept {
      cublasLtMatmulPreferenceDestroy(it);
    }
  };
  template <class Handle>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;
  using Operation = Owned<cublasLtMatmulDesc_t>;
  using Layout = Owned<cublasLtMatrixLayout_t>;
  using Preference = Owned<cublasLtMatmulPreference_t>;

  static Result<Operation> make_operation(const MatmulShape& shape);
  /// What is row-major [rows, columns] to us is column-major [columns, rows] to cuBLASLt.
  static Result<Layout> make_layout(std::int64_t rows, std::int64_t columns,
                                    const MatrixLayout& matrix, std::int64_t batch, DType type);
  static Result<Preference> make_preference(const MatmulShape& shape);
  Status pick_algorithm(Context& context, const MatmulShape& shape);

  float alpha_ = 1.0f;
  Operation operation_;
  Layout a_, b_, c_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_bytes_ = 0;
  std::size_t workspace_ = 0;  ///< in the scratch
};

}  // namespace troupe::kernels::cuda
