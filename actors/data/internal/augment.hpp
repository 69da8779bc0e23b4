#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/philox.hpp"

namespace troupe::train::internal {

/// The random numbers of one sample in one epoch: what augments it draws from them.
kernels::Philox random_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index);

/// Planes of u8 pixels, [channels, height, width].
struct PlaneSizes {
  std::size_t channels = 3;
  std::size_t height = 0;
  std::size_t width = 0;
};

/// Copies `from` to `to` as if it had a black frame of `padding` pixels and were then cut to its
/// size again at a random place, and mirrors it left to right or not. As in He et al., "Deep
/// residual learning for image recognition" (2015), section 4.2.
void crop_and_flip(std::span<const std::byte> from, PlaneSizes sizes, std::size_t padding,
                   kernels::Philox& random, std::span<std::byte> to);

/// Mirrors every row.
void flip(std::span<std::byte> planes, std::size_t width);

}  // namespace troupe::train::internal
