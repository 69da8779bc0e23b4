#include "actors/data/internal/resample.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "actors/data/internal/augment.hpp"
#include "tests/actors/data/picture_files.hpp"

namespace troupe::train::internal {
namespace {

Image image_of(std::uint32_t width, std::uint32_t height) {
  return {width, height, picture(width, height, 1)};
}

std::vector<int> resampled(const Image& image, const Region& region, std::uint32_t size) {
  std::vector<std::byte> planes(std::size_t{3} * size * size);
  resample(image, region, size, planes);
  std::vector<int> values;
  for (const std::byte b : planes) values.push_back(std::to_integer<int>(b));
  return values;
}

TEST(Resample, at_its_own_size_an_image_stays_as_it_is) {
  const Image image = image_of(5, 5);
  const auto planes = resampled(image, {0, 0, 5, 5}, 5);
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t i = 0; i < 25; ++i)
      EXPECT_EQ(planes[channel * 25 + i], image.pixels[i * 3 + channel]);
}

TEST(Resample, one_colour_stays_that_at_any_size) {
  const Image image{7, 11, std::vector<std::uint8_t>(7 * 11 * 3, 201)};
  for (const std::uint32_t size : {1, 2, 3, 16, 40})
    for (const int value : resampled(image, {1, 2, 5, 8}, size)) EXPECT_EQ(value, 201);
}

TEST(Resample, halving_weighs_the_neighbours_as_a_triangle) {
  // 0 0 0 0 255 255 255 255: pixel 1 is around the border of the 2nd and 3rd, its triangle reaches
  // from -1/2 to 3 1/2 pixels beyond: weights 1 3 3 1 of 8.
  Image image{8, 1, {}};
  for (int x = 0; x < 8; ++x)
    for (int channel = 0; channel < 3; ++channel)
      image.pixels.push_back(x < 4 ? std::uint8_t{0} : std::uint8_t{255});
  const auto planes = resampled(image, {0, 0, 8, 1}, 4);
  EXPECT_EQ(planes[0], 0);
  EXPECT_EQ(planes[1], 32);   // 255 / 8
  EXPECT_EQ(planes[2], 223);  // 255 * 7 / 8
  EXPECT_EQ(planes[3], 255);
}

TEST(Regions, the_middle_is_a_square_of_seven_eighths) {
  const Region region = centre_region(image_of(80, 64));
  EXPECT_EQ(region.width, 56u);
  EXPECT_EQ(region.height, 56u);
  EXPECT_EQ(region.left, 12u);
  EXPECT_EQ(region.top, 4u);
  EXPECT_EQ(centre_region(image_of(1, 1)).width, 1u);
}

TEST(Regions, random_ones_lie_in_the_image_and_vary) {
  for (const auto& [width, height] : {std::pair{1u, 1u}, {1u, 40u}, {64u, 48u}, {300u, 2u}}) {
    const Image image = image_of(width, height);
    std::set<std::uint32_t> widths;
    for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
      auto random = random_of(1, epoch, 0);
      const Region region = random_region(image, random);
      ASSERT_GE(region.width, 1u);
      ASSERT_GE(region.height, 1u);
      ASSERT_LE(region.left + region.width, width);
      ASSERT_LE(region.top + region.height, height);
      widths.insert(region.width);
    }
    EXPECT_TRUE(width != 64 || widths.size() > 20u);
  }
}

}  // namespace
}  // namespace troupe::train::internal
