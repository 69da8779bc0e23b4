#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <jpeglib.h>
#include <png.h>

#include "runtime/base/check.hpp"

namespace troupe::train {

/// An RGB picture: each pixel a function of its place and `seed`, smooth enough for a JPEG.
inline std::vector<std::uint8_t> picture(std::uint32_t width, std::uint32_t height,
                                         std::uint32_t seed) {
  std::vector<std::uint8_t> rgb;
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::uint32_t x = 0; x < width; ++x)
      for (std::uint32_t channel = 0; channel < 3; ++channel)
        rgb.push_back(static_cast<std::uint8_t>(x * (seed + 1) + y * 2 + channel * 60 + seed * 40));
  return rgb;
}

/// The picture as a file's bytes.
inline std::string jpeg_of(std::vector<std::uint8_t> rgb, std::uint32_t width, std::uint32_t height,
                           bool progressive = false) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (std::size_t y = 0; y < height; ++y) {
    JSAMPROW row = rgb.data() + y * width * 3;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return file;
}

inline std::string png_of(const std::vector<std::uint8_t>& pixels, std::uint32_t width,
                          std::uint32_t height, std::uint32_t format = PNG_FORMAT_RGB) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(size, '\0');
  TROUPE_CHECK(png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr),
               "png_image_write_to_memory");
  file.resize(size);
  return file;
}

/// A tar file's entry, padded to whole blocks.
inline std::string tar_entry(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  const auto octal = [](std::size_t value, int digits) {
    std::string text(static_cast<std::size_t>(digits), '0');
    for (int i = digits - 1; i >= 0; --i, value /= 8)
      text[static_cast<std::size_t>(i)] = static_cast<char>('0' + value % 8);
    return text;
  };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, octal(content.size(), 11));
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  std::size_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  std::string entry = header + content;
  entry.resize((entry.size() + 511) / 512 * 512);
  return entry;
}

}  // namespace troupe::train
