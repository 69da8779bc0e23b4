#include "actors/data/internal/augment.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::train::internal {

kernels::Philox random_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index) {
  constexpr std::uint64_t kAugment = 0x61756d656e74;  // "augment": no other stream's name
  return kernels::Philox(seed, {kAugment, epoch, index});
}

void crop_and_flip(std::span<const std::byte> from, PlaneSizes sizes, std::size_t padding,
                   kernels::Philox& random, std::span<std::byte> to) {
  // Where the frame's upper left corner comes to lie, relative to the image's.
  const auto top = static_cast<std::ptrdiff_t>(random.below(2 * padding + 1)) -
                   static_cast<std::ptrdiff_t>(padding);
  const auto left = static_cast<std::ptrdiff_t>(random.below(2 * padding + 1)) -
                    static_cast<std::ptrdiff_t>(padding);
  const bool mirrored = random.below(2) == 1;
  const auto height = static_cast<std::ptrdiff_t>(sizes.height);
  const auto width = static_cast<std::ptrdiff_t>(sizes.width);
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, -left);  // column that is in the image
  const std::ptrdiff_t last = std::min(width, width - left);

  std::fill(to.begin(), to.end(), std::byte{0});
  for (std::size_t channel = 0; channel < sizes.channels; ++channel) {
    const std::size_t plane = channel * sizes.height * sizes.width;
    for (std::ptrdiff_t y = 0; y < height; ++y) {
      if (y + top < 0 || y + top >= height || first >= last) continue;
      std::memcpy(to.data() + plane + y * width + first,
                  from.data() + plane + (y + top) * width + first + left,
                  static_cast<std::size_t>(last - first));
    }
  }
  if (mirrored) flip(to, sizes.width);
}

void flip(std::span<std::byte> planes, std::size_t width) {
  for (std::size_t row = 0; row + width <= planes.size(); row += width) {
    const auto pixels = planes.subspan(row, width);
    std::reverse(pixels.begin(), pixels.end());
  }
}

}  // namespace troupe::train::internal
