#include "actors/data/internal/resample.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace troupe::train::internal {
namespace {

constexpr std::int64_t kOne = 1 << 16;  // weights add up to this

/// Which pixels of a line one pixel of the scaled line is made of.
struct Taps {
  std::size_t first = 0;
  std::vector<std::int32_t> weights;
};

/// Pixel x of the scaled line is around (x + 1/2) * from / to. All distances are counted in units
/// of 1 / (2 to), so that they are whole.
std::vector<Taps> make_taps(std::int64_t from, std::int64_t to) {
  std::vector<Taps> taps(static_cast<std::size_t>(to));
  const std::int64_t reach = 2 * std::max(from, to);  // of the filter, to either side
  for (std::int64_t x = 0; x < to; ++x) {
    const std::int64_t centre = (2 * x + 1) * from;
    // Pixel i is around (2 i + 1) to.
    const std::int64_t begin = std::max<std::int64_t>(0, (centre - reach) / (2 * to) - 1);
    const std::int64_t end = std::min(from, (centre + reach) / (2 * to) + 2);
    Taps& tap = taps[static_cast<std::size_t>(x)];
    tap.first = static_cast<std::size_t>(begin);
    std::vector<std::int64_t> exact;
    std::int64_t sum = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      exact.push_back(std::max<std::int64_t>(0, reach - std::abs((2 * i + 1) * to - centre)));
      sum += exact.back();
    }
    std::int64_t left = kOne;
    for (const std::int64_t weight : exact) {
      tap.weights.push_back(static_cast<std::int32_t>((weight * kOne + sum / 2) / sum));
      left -= tap.weights.back();
    }
    // What rounding left goes to the heaviest, where it shows least.
    *std::max_element(tap.weights.begin(), tap.weights.end()) += static_cast<std::int32_t>(left);
  }
  return taps;
}

std::uint8_t rounded(std::int64_t sum) {
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>((sum + kOne / 2) / kOne, 0, 255));
}

/// The logarithmically uniform ratios from 3:4 to 4:3, at eight equal steps and straight between
/// them, in 2^-16. Written out because the machines' powers differ in their last bits.
constexpr std::array<std::uint32_t, 9> kRatios = {49152, 52817, 56755, 60987, 65536,
                                                  70423, 75674, 81317, 87381};

}  // namespace

Region centre_region(const Image& image) {
  const std::uint32_t side = std::min(image.width, image.height);
  const std::uint32_t cut = std::max<std::uint32_t>(1, (side * 7 + 4) / 8);
  return {(image.width - cut) / 2, (image.height - cut) / 2, cut, cut};
}

Region random_region(const Image& image, kernels::Philox& random) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    // Always the same number of draws in an attempt.
    const std::uint64_t share = 8'000'000 + random.below(92'000'001);  // of 10^8
    const std::uint64_t place = random.below((kRatios.size() - 1) << 16);
    const std::uint64_t x = random.next64(), y = random.next64();
    const std::size_t step = place >> 16;
    const std::uint64_t between = place & 0xffff;
    const std::uint64_t ratio =
        (kRatios[step] * (65536 - between) + kRatios[step + 1] * between) >> 16;
    const std::uint64_t area = std::uint64_t{image.width} * image.height * share / 100'000'000;
    // A root is correctly rounded everywhere, and what it is taken of is a whole number.
    const auto root = [](std::uint64_t value) {
      return static_cast<std::uint64_t>(std::sqrt(static_cast<double>(value)));
    };
    const std::uint64_t width = root((area * ratio) >> 16);
    const std::uint64_t height = root((area << 16) / ratio);
    if (width == 0 || height == 0 || width > image.width || height > image.height) continue;
    return {static_cast<std::uint32_t>(x % (image.width - width + 1)),
            static_cast<std::uint32_t>(y % (image.height - height + 1)),
            static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
  }
  const std::uint32_t side = std::min(image.width, image.height);
  return {(image.width - side) / 2, (image.height - side) / 2, side, side};
}

void resample(const Image& image, const Region& region, std::uint32_t size,
              std::span<std::byte> planes) {
  const auto across = make_taps(region.width, size);
  const auto down = make_taps(region.height, size);
  // First every row of the region to its width, [region.height, size, 3].
  const std::size_t row_bytes = std::size_t{size} * 3;
  std::vector<std::uint8_t> rows(region.height * row_bytes);
  for (std::size_t y = 0; y < region.height; ++y) {
    const std::uint8_t* const from =
        image.pixels.data() + ((region.top + y) * image.width + region.left) * 3;
    for (std::size_t x = 0; x < size; ++x) {
      std::array<std::int64_t, 3> sums{};
      const std::uint8_t* pixel = from + across[x].first * 3;
      for (const std::int32_t weight : across[x].weights)
        for (std::int64_t& sum : sums) sum += std::int64_t{weight} * *pixel++;
      for (std::size_t channel = 0; channel < 3; ++channel)
        rows[y * row_bytes + x * 3 + channel] = rounded(sums[channel]);
    }
  }
  std::vector<std::int64_t> sums(row_bytes);
  for (std::size_t y = 0; y < size; ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    const std::uint8_t* from = rows.data() + down[y].first * row_bytes;
    for (const std::int32_t weight : down[y].weights)
      for (std::int64_t& sum : sums) sum += std::int64_t{weight} * *from++;
    for (std::size_t x = 0; x < size; ++x)
      for (std::size_t channel = 0; channel < 3; ++channel)
        planes[(channel * size + y) * size + x] = std::byte{rounded(sums[x * 3 + channel])};
  }
}

}  // namespace troupe::train::internal
