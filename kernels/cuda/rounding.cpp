#include "kernels/cuda/internal/rounding.hpp"

#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/vector_bodies.hpp"

namespace troupe::kernels::cuda {

RoundedFactor::RoundedFactor(DType type, std::size_t elements, ScratchPlaces& scratch)
    : type_(type), elements_(elements) {
  if (type != DType::f32) place_ = scratch.add(elements * size_of(type));
}

Result<const void*> RoundedFactor::enqueue(cudaStream_t stream, const ScratchPlaces& scratch,
                                           const float* from) const {
  if (type_ == DType::f32) return static_cast<const void*>(from);
  auto* const to = reinterpret_cast<std::uint16_t*>(scratch.at(place_));
  if (type_ == DType::bf16)
    TROUPE_TRY(for_each(stream, elements_, ToBf16{from, to}));
  else
    TROUPE_TRY(for_each(stream, elements_, ToF16{from, to}));
  return static_cast<const void*>(to);
}

Status widen(cudaStream_t stream, DType type, const void* from, std::size_t n, float* to) {
  const auto* const bits = static_cast<const std::uint16_t*>(from);
  if (type == DType::bf16) return for_each(stream, n, FromBf16{bits, to});
  return for_each(stream, n, FromF16{bits, to});
}

Status round_to_channels_last(cudaStream_t stream, DType type, const ChannelSizes& sizes,
                              const float* from, std::uint16_t* to) {
  const std::size_t runs = sizes.runs_of(sizes.all_samples);
  if (type == DType::bf16)
    return for_each(stream, runs, RoundToChannelsLast<Bf16>{sizes, from, to});
  return for_each(stream, runs, RoundToChannelsLast<F16>{sizes, from, to});
}

}  // namespace troupe::kernels::cuda
