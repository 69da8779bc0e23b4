#include "actors/data/internal/image_sample.hpp"

#include "actors/data/internal/augment.hpp"
#include "actors/data/internal/image.hpp"
#include "actors/data/internal/resample.hpp"

namespace troupe::train::internal {

Status make_image_sample(std::span<const std::byte> file, std::string_view name,
                         std::uint64_t index, Use use, const ImageSampleOptions& options,
                         std::span<std::byte> planes) {
  TROUPE_ASSIGN(const Image image, decode_image(file, name));
  if (!use.training || !options.crop_and_flip) {
    resample(image, centre_region(image), options.size, planes);
    return {};
  }
  auto random = random_of(options.seed, use.epoch, index);
  const bool mirrored = random.below(2) == 1;
  resample(image, random_region(image, random), options.size, planes);
  if (mirrored) flip(planes, options.size);
  return {};
}

}  // namespace troupe::train::internal
