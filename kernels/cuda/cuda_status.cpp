#include "kernels/cuda/internal/cuda_status.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/cuda/internal/context.hpp"

namespace troupe::kernels::cuda {

Status check(cudaError_t result, std::string_view what) {
  if (result == cudaSuccess) return {};
  const Code code =
      result == cudaErrorMemoryAllocation ? Code::resource_exhausted : Code::unavailable;
  return {code, fmt::format("{}: CUDA says: {} ({})", what, cudaGetErrorString(result),
                            cudaGetErrorName(result))};
}

Status check(cudnnStatus_t result, std::string_view what) {
  if (result == CUDNN_STATUS_SUCCESS) return {};
  // cuDNN 9 numbers its errors by kind: thousands are kinds, and what follows is the reason.
  constexpr int kKind = 1000;
  const int kind = static_cast<int>(result) / kKind * kKind;
  Code code = Code::unavailable;
  if (kind == CUDNN_STATUS_NOT_SUPPORTED) code = Code::not_supported;
  if (result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
    code = Code::resource_exhausted;
  char reason[256] = "";
  cudnnGetLastErrorString(reason, sizeof reason);
  return {code, fmt::format("{}: cuDNN says: {}{}{}", what, cudnnGetErrorString(result),
                            reason[0] == '\0' ? "" : ": ", reason)};
}

Status check(cublasStatus_t result, std::string_view what) {
  if (result == CUBLAS_STATUS_SUCCESS) return {};
  Code code = Code::unavailable;
  if (result == CUBLAS_STATUS_NOT_SUPPORTED) code = Code::not_supported;
  if (result == CUBLAS_STATUS_ALLOC_FAILED) code = Code::resource_exhausted;
  return {code, fmt::format("{}: cuBLASLt says: {} ({})", what, cublasLtGetStatusString(result),
                            cublasLtGetStatusName(result))};
}

}  // namespace troupe::kernels::cuda
