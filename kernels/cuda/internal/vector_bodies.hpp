#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/host_device.hpp"
#include "kernels/short_floats.hpp"

namespace troupe::kernels::cuda {

struct ToBf16 {
  const float* from;
  std::uint16_t* to;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { to[i] = bf16_bits(from[i]); }
};
struct FromBf16 {
  const std::uint16_t* from;
  float* to;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { to[i] = bf16_value(from[i]); }
};
struct ToF16 {
  const float* from;
  std::uint16_t* to;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { to[i] = f16_bits(from[i]); }
};
struct FromF16 {
  const std::uint16_t* from;
  float* to;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { to[i] = f16_value(from[i]); }
};

struct Scale {
  float* values;
  const float* factor;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    if (*factor != 1.0f) values[i] *= *factor;
  }
};

/// What the bytes of images become: to = table[channel][byte], with one table or one a channel.
struct NormalizePixels {
  const std::uint8_t* bytes;
  const float* tables;   ///< of 256 each
  std::size_t channels;  ///< tables; 1 is for all channels
  std::size_t area;      ///< bytes of a channel, one after the other
  float* to;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    to[i] = tables[i / area % channels * 256 + bytes[i]];
  }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_VECTOR_BODIES(each)                                            \
  each(troupe::kernels::cuda::ToBf16) each(troupe::kernels::cuda::FromBf16)   \
      each(troupe::kernels::cuda::ToF16) each(troupe::kernels::cuda::FromF16) \
          each(troupe::kernels::cuda::NormalizePixels) each(troupe::kernels::cuda::Scale)
