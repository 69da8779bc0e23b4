#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/internal/rounding_bodies.hpp"
#include "kernels/dtype.hpp"
#include "kernels/internal/shared_scratch.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::cuda {

/// A factor of products in the type that it is rounded to, in the scratch; of f32 nothing is
/// copied.
class RoundedFactor {
public:
  RoundedFactor() = default;
  RoundedFactor(DType type, std::size_t elements, ScratchPlaces& scratch);

  /// Rounds `from`, and says where the factor is then. Errors: as the stream's.
  Result<const void*> enqueue(cudaStream_t stream, const ScratchPlaces& scratch,
                              const float* from) const;

private:
  DType type_ = DType::f32;
  std::size_t elements_ = 0;
  std::size_t place_ = 0;
};

/// `n` floats from bf16 or f16 at `from`.
Status widen(cudaStream_t stream, DType type, const void* from, std::size_t n, float* to);

/// As RoundToChannelsLast, to bf16 or f16.
Status round_to_channels_last(cudaStream_t stream, DType type, const ChannelSizes& sizes,
                              const float* from, std::uint16_t* to);

}  // namespace troupe::kernels::cuda
