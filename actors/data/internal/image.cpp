#include "actors/data/internal/image.hpp"

#include <new>

#include <fmt/format.h>

namespace troupe::train::internal {

Error damaged_image(std::string_view name, std::string_view what) {
  return {Code::corrupt_data,
          fmt::format("{}: {}; replace it, or leave such out by data.bad_samples = \"skip\"", name,
                      what)};
}

Status check_image_size(std::uint64_t width, std::uint64_t height, std::uint64_t bytes,
                        std::uint64_t pixels_per_byte, std::string_view name,
                        const ImageLimits& limits) {
  if (width == 0 || height == 0) return damaged_image(name, "the image has no pixels");
  if (width > limits.most_side || height > limits.most_side || width * height > limits.most_pixels)
    return damaged_image(
        name, fmt::format("its header says {} by {} pixels, but at most {} a side and {} in all "
                          "are decoded",
                          width, height, limits.most_side, limits.most_pixels));
  if (width * height / pixels_per_byte > bytes)
    return damaged_image(name, fmt::format("its header says {} by {} pixels, more than its {} "
                                           "bytes can hold",
                                           width, height, bytes));
  return {};
}

Status allocate_pixels(Image& image, std::string_view name) {
  try {
    image.pixels.resize(std::size_t{image.width} * image.height * 3);
  } catch (const std::bad_alloc&) {
    return {Code::resource_exhausted, fmt::format("no memory for the {} by {} pixels of {}",
                                                  image.width, image.height, name)};
  }
  return {};
}

Result<Image> decode_image(std::span<const std::byte> bytes, std::string_view name,
                           const ImageLimits& limits) {
  const auto begins_with = [&](std::initializer_list<int> magic) {
    if (bytes.size() < magic.size()) return false;
    std::size_t at = 0;
    for (const int byte : magic)
      if (std::to_integer<int>(bytes[at++]) != byte) return false;
    return true;
  };
  if (begins_with({0xff, 0xd8, 0xff})) return decode_jpeg(bytes, name, limits);
  if (begins_with({0x89, 'P', 'N', 'G'})) return decode_png(bytes, name, limits);
  return damaged_image(name, bytes.empty() ? "it is empty" : "it is neither a JPEG nor a PNG file");
}

}  // namespace troupe::train::internal
