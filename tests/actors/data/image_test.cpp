#include "actors/data/internal/image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/data/data_files.hpp"
#include "tests/actors/data/picture_files.hpp"

namespace troupe::train::internal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Result<Image> decode(const std::string& file, const ImageLimits& limits = {}) {
  return decode_image(std::as_bytes(std::span(file)), "file", limits);
}

TEST(DecodeImage, gives_the_pixels_of_a_png_exactly) {
  const auto pixels = picture(13, 7, 2);
  const auto image = decode(png_of(pixels, 13, 7));
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(image->width, 13u);
  EXPECT_EQ(image->height, 7u);
  EXPECT_EQ(image->pixels, pixels);
}

TEST(DecodeImage, makes_grey_palettes_and_transparent_ones_rgb) {
  const std::vector<std::uint8_t> grey = {0, 100, 200, 255};
  EXPECT_EQ(decode(png_of(grey, 2, 2, PNG_FORMAT_GRAY))->pixels,
            (std::vector<std::uint8_t>{0, 0, 0, 100, 100, 100, 200, 200, 200, 255, 255, 255}));
  const std::vector<std::uint8_t> rgba = {1, 2, 3, 0, 4, 5, 6, 255};
  EXPECT_EQ(decode(png_of(rgba, 2, 1, PNG_FORMAT_RGBA))->pixels,
            (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
}

TEST(DecodeImage, gives_the_pixels_of_a_jpeg_nearly) {
  std::vector<std::uint8_t> pixels;  // a ramp: all of it is low frequencies
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 33; ++x)
      for (int channel = 0; channel < 3; ++channel)
        pixels.push_back(static_cast<std::uint8_t>(60 + 2 * x + 3 * y));
  for (const bool progressive : {false, true}) {
    const auto image = decode(jpeg_of(pixels, 33, 20, progressive));
    ASSERT_TRUE(image.ok()) << image.error().message;
    ASSERT_EQ(image->pixels.size(), pixels.size());
    for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_NEAR(image->pixels[i], pixels[i], 6);
  }
}

TEST(DecodeImage, what_is_cut_off_is_damaged_wherever_it_is_cut) {
  for (const auto& file : {jpeg_of(picture(40, 40, 1), 40, 40), png_of(picture(40, 40, 1), 40, 40),
                           jpeg_of(picture(40, 40, 1), 40, 40, true)})
    for (std::size_t size = 0; size + 2 < file.size(); size += 1 + size / 50) {
      const auto image = decode(file.substr(0, size));
      ASSERT_EQ(image.code(), Code::corrupt_data) << size << " of " << file.size();
      EXPECT_THAT(image.error().message, AllOf(HasSubstr("file: "), HasSubstr("bad_samples")));
    }
}

TEST(DecodeImage, other_files_are_told) {
  EXPECT_THAT(error_of(decode("GIF89a")), HasSubstr("neither a JPEG nor a PNG"));
  EXPECT_THAT(error_of(decode("")), HasSubstr("it is empty"));
}

TEST(DecodeImage, a_size_that_the_header_claims_is_checked_before_memory_is_taken) {
  auto jpeg = jpeg_of(picture(8, 8, 1), 8, 8);
  const auto at = jpeg.find("\xff\xc0");
  ASSERT_NE(at, std::string::npos);
  jpeg.replace(at + 5, 4, "\x1f\x40\x1f\x40");  // 8000 by 8000
  EXPECT_THAT(error_of(decode(jpeg)), HasSubstr("8000 by 8000 pixels, more than its"));
  jpeg.replace(at + 5, 4, "\xff\x00\xff\x00", 4);
  EXPECT_THAT(error_of(decode(jpeg)), HasSubstr("at most 32768 a side"));
  EXPECT_THAT(error_of(decode(png_of(picture(9, 8, 1), 9, 8), {.most_side = 8})),
              HasSubstr("9 by 8 pixels, but at most 8 a side"));
}

}  // namespace
}  // namespace troupe::train::internal
