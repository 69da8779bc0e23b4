#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "actors/data/internal/image.hpp"
#include "kernels/philox.hpp"

namespace troupe::train::internal {

/// A rectangle of an image's pixels.
struct Region {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

/// The largest square in the middle, less an eighth: as if the shorter side were made 8/7 of the
/// size that is wanted and the middle cut out.
Region centre_region(const Image& image);

/// A region of 8% to 100% of the image's area and 3:4 to 4:3, anywhere in it: Szegedy et al.,
/// "Going deeper with convolutions" (2015), section 6. After ten that do not fit, the middle.
Region random_region(const Image& image, kernels::Philox& random);

/// Scales a region, which must lie in the image, to size by size pixels: u8 [3, size, size]. A
/// triangle filter that widens where it makes smaller, in integers, so that the bytes are the same
/// everywhere.
void resample(const Image& image, const Region& region, std::uint32_t size,
              std::span<std::byte> planes);

}  // namespace troupe::train::internal
