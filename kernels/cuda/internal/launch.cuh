#pragma once

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/internal/cuda_status.hpp"
#include "kernels/cuda/internal/group.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

inline constexpr unsigned kThreads = 256;
static_assert(kThreads == Group::kLanes);
// Blocks of a loop over elements: enough to fill any GPU, so that few elements wait for a launch.
inline constexpr std::size_t kMostBlocks = 1 << 16;
// Of a grid's first dimension (CUDA C++ Programming Guide, "Technical Specifications").
inline constexpr std::size_t kMostRows = 0x7fffffff;

template <class Body>
__global__ void __launch_bounds__(kThreads) elements(std::size_t n, const Body body) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * kThreads;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += step)
    body(i);
}

template <class Body>
__global__ void __launch_bounds__(kThreads) row(const Body body) {
  __shared__ double lanes[Group::kLanes];
  Group group(lanes);
  body(group, static_cast<std::size_t>(blockIdx.x));
}

// With cudaLaunchKernel, which gives the launch's own error, not one that was there before.

template <class Body>
Status for_each(cudaStream_t stream, std::size_t n, const Body& body) {
  if (n == 0) return {};
  const std::size_t blocks = std::min(kMostBlocks, (n + kThreads - 1) / kThreads);
  void* arguments[] = {&n, const_cast<Body*>(&body)};
  return check(
      cudaLaunchKernel(reinterpret_cast<const void*>(&elements<Body>),
                       dim3(static_cast<unsigned>(blocks)), dim3(kThreads), arguments, 0, stream),
      "launch of a kernel over elements");
}

template <class Body>
Status for_each_row(cudaStream_t stream, std::size_t rows, const Body& body) {
  if (rows == 0) return {};
  if (rows > kMostRows)
    return {Code::not_supported, "a kernel over more than 2^31 - 1 rows; take a smaller batch"};
  void* arguments[] = {const_cast<Body*>(&body)};
  return check(
      cudaLaunchKernel(reinterpret_cast<const void*>(&row<Body>), dim3(static_cast<unsigned>(rows)),
                       dim3(kThreads), arguments, 0, stream),
      "launch of a kernel over rows");
}

}  // namespace troupe::kernels::cuda

/// For the lists of bodies: makes them for the device.
#define TROUPE_CUDA_ELEMENTS(...)                                                      \
  template ::troupe::Status troupe::kernels::cuda::for_each(cudaStream_t, std::size_t, \
                                                            const __VA_ARGS__&);
#define TROUPE_CUDA_ROWS(...)                                                              \
  template ::troupe::Status troupe::kernels::cuda::for_each_row(cudaStream_t, std::size_t, \
                                                                const __VA_ARGS__&);
