#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include "runtime/base/status.hpp"

// Our own kernels are bodies: structs of pointers and sizes (the headers *_bodies.hpp) that do the
// work of one element or one row, written once for host and device. The .cu files make them for the
// device; tests run the same bodies in plain loops.
namespace troupe::kernels::cuda {

/// Enqueues body(i) for each i < n, in no order.
/// Errors: `unavailable` with CUDA's text.
template <class Body>
Status for_each(cudaStream_t stream, std::size_t n, const Body& body);

/// Enqueues body(group, row) for each row < rows, in no order, each by the lanes of a Group.
template <class Body>
Status for_each_row(cudaStream_t stream, std::size_t rows, const Body& body);

}  // namespace troupe::kernels::cuda
