#pragma once

#include <cstddef>
#include <span>

#include "kernels/cuda/internal/cuda_stream.hpp"
#include "kernels/model.hpp"
#include "kernels/optimizer.hpp"

namespace troupe::kernels::cuda {

/// Enqueues one update of `parameters` and `state`, in place: what Optimizer::update does on the
/// host, with the same bits. All are the device's, each model.flat_size() floats; `gradient` is
/// whole, and there are as many `state` as Optimizer::state_names() says.
/// Errors: `not_found` for an optimizer that is none of optimizer_names(); as the stream's.
Status update(CudaStream& stream, const OptimizerOptions& options, const Model& model,
              const UpdateFactors& factors, const float* gradient, float* parameters,
              std::span<float* const> state);

/// Likewise what update_statistics() does with the first `n` floats of all `sums`.
Status update_statistics(CudaStream& stream, const Model& model, const float* sums, std::size_t n,
                         float scale, float* parameters);

}  // namespace troupe::kernels::cuda
