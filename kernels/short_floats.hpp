#pragma once

#include <bit>
#include <cstdint>

#include "kernels/host_device.hpp"

// Floats of 16 bits, as bits: to the nearest, of two equally near ones the even.
namespace troupe::kernels {

/// bfloat16: the upper half of a float. NaN stays one.
TROUPE_HOST_DEVICE inline std::uint16_t bf16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
TROUPE_HOST_DEVICE inline float bf16_value(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// IEEE 754's binary16: what is too large becomes infinite.
TROUPE_HOST_DEVICE inline std::uint16_t f16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // NaN
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more
  if (magnitude < 0x38800000u) {
    // Below 2^-14: a multiple of 2^-24, which an addition of 1/2 rounds to.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  // Another exponent's bias, 13 bits less of the fraction.
  const std::uint32_t rounded = magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}
TROUPE_HOST_DEVICE inline float f16_value(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

}  // namespace troupe::kernels
