#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "actors/data/dataset.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train::internal {

/// How a picture becomes a sample of one size.
struct ImageSampleOptions {
  std::uint32_t size = 224;    ///< height and width
  bool crop_and_flip = false;  ///< in training: a random region, mirrored or not
  std::uint64_t seed = 0;      ///< of that
};

/// Decodes a file's bytes and writes u8 [3, size, size]. Errors: as decode_image, which see for
/// `name`.
Status make_image_sample(std::span<const std::byte> file, std::string_view name,
                         std::uint64_t index, Use use, const ImageSampleOptions& options,
                         std::span<std::byte> planes);

/// The largest file that is read as one image.
inline constexpr std::uint64_t kMostImageBytes = std::uint64_t{256} << 20;

}  // namespace troupe::train::internal
