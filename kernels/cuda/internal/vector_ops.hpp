#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/internal/cuda_stream.hpp"

/// What a step does with runs of floats besides the model's layers. All memory is the device's, and
/// work is enqueued. Errors: as the stream's.
namespace troupe::kernels::cuda {

/// to[i] = a[i] + b[i]: two nodes' gradients become one of a reduction's tree. `to` may be either.
Status add(CudaStream& stream, const float* a, const float* b, float* to, std::size_t n);

/// Floats of 16 bits (kernels/short_floats.hpp), to send half as many bytes.
Status to_bf16(CudaStream& stream, const float* from, std::uint16_t* to, std::size_t n);
Status from_bf16(CudaStream& stream, const std::uint16_t* from, float* to, std::size_t n);
Status to_f16(CudaStream& stream, const float* from, std::uint16_t* to, std::size_t n);
Status from_f16(CudaStream& stream, const std::uint16_t* from, float* to, std::size_t n);

/// A run of floats of a gradient, and where it is put.
struct PackedRun {
  const float* from;
  float* to;
  std::size_t floats;
};
/// Copies runs, say those of a bucket's parameters to where it is sent from; or back.
Status pack(CudaStream& stream, const PackedRun* runs, std::size_t count);

/// Bytes of images [samples, channels, area] as floats: to[i] = tables[channel][bytes[i]], with
/// tables [1 or channels, 256].
struct PixelRun {
  const std::uint8_t* bytes;
  std::size_t n;
  const float* tables;
  std::size_t channels;  ///< tables; 1 is for all channels
  std::size_t area;
};
Status normalize_pixels(CudaStream& stream, const PixelRun& pixels, float* to);

}  // namespace troupe::kernels::cuda
