#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.hpp"

namespace troupe::train::internal {

/// A picture as it was decoded: rows of red, green and blue bytes.
struct Image {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width, 3]
};

/// What is refused before memory is taken for it.
struct ImageLimits {
  std::uint32_t most_side = 32768;
  std::uint64_t most_pixels = std::uint64_t{1} << 26;
};

/// Decodes a JPEG or PNG file, whichever its first bytes say. Grey, palettes, 16 bits and CMYK
/// become RGB; an alpha channel is left out; no colour profile or gamma is applied. In integer
/// arithmetic: the same bytes everywhere.
/// Errors: `corrupt_data` for what is neither, is cut off or damaged, or is larger than the limits
/// or than so few bytes can be; `resource_exhausted`. The sentence begins with `name`.
Result<Image> decode_image(std::span<const std::byte> bytes, std::string_view name,
                           const ImageLimits& limits = {});

Result<Image> decode_jpeg(std::span<const std::byte> bytes, std::string_view name,
                          const ImageLimits& limits);
Result<Image> decode_png(std::span<const std::byte> bytes, std::string_view name,
                         const ImageLimits& limits);

/// That a header's size is within the limits, and that a file of `bytes` can hold it at all:
/// `pixels_per_byte` is the most that the format packs.
Status check_image_size(std::uint64_t width, std::uint64_t height, std::uint64_t bytes,
                        std::uint64_t pixels_per_byte, std::string_view name,
                        const ImageLimits& limits);

/// Memory for the pixels of a size that was checked.
Status allocate_pixels(Image& image, std::string_view name);

/// `corrupt_data`: "NAME: what; replace the file or take data.bad_samples = "skip"".
Error damaged_image(std::string_view name, std::string_view what);

}  // namespace troupe::train::internal
