#include "actors/data/dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#define XXH_INLINE_ALL
#include <cstring>

#include <xxhash.h>

namespace troupe::train {
namespace {

std::string hash_of(const IdxArray& images, const IdxArray& labels) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  TROUPE_CHECK(state != nullptr, "no memory for a hash");
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), images.shape.data(),
                      images.shape.size() * sizeof(images.shape[0]));
  XXH3_128bits_update(state.get(), images.data.data(), images.data.size());
  XXH3_128bits_update(state.get(), labels.data.data(), labels.data.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Status check_shapes(const IdxArray& images, const IdxArray& labels, const std::string& images_name,
                    const std::string& labels_name) {
  const auto damaged = [](std::string what) { return Status{Code::corrupt_data, std::move(what)}; };
  if (images.shape.size() != 3)
    return damaged(
        fmt::format("{} has the shape [{}], but images are [count, height, width]; check "
                    "that it is not the file of labels",
                    images_name, fmt::join(images.shape, ", ")));
  if (labels.shape.size() != 1)
    return damaged(
        fmt::format("{} has the shape [{}], but labels are [count]; check that it is not "
                    "the file of images",
                    labels_name, fmt::join(labels.shape, ", ")));
  if (images.data.empty())
    return damaged(fmt::format("{} has no images, its shape is [{}]; name a file that has",
                               images_name, fmt::join(images.shape, ", ")));
  if (images.shape[0] != labels.shape[0])
    return damaged(
        fmt::format("{} has {} images but {} has {} labels; check that they belong "
                    "together",
                    images_name, images.shape[0], labels_name, labels.shape[0]));
  return {};
}

}  // namespace

Result<ImageDataset> ImageDataset::load(const std::filesystem::path& images,
                                        const std::filesystem::path& labels,
                                        std::uint32_t classes) {
  TROUPE_ASSIGN(IdxArray image_array, read_idx(images));
  TROUPE_ASSIGN(IdxArray label_array, read_idx(labels));
  return make(std::move(image_array), std::move(label_array), classes, images.native(),
              labels.native());
}

Result<ImageDataset> ImageDataset::make(IdxArray images, IdxArray labels, std::uint32_t classes,
                                        const std::string& images_name,
                                        const std::string& labels_name) {
  TROUPE_TRY(check_shapes(images, labels, images_name, labels_name));
  for (std::size_t i = 0; i < labels.data.size(); ++i) {
    const auto label = std::to_integer<std::uint32_t>(labels.data.data()[i]);
    if (label >= classes)
      return Error{
          Code::corrupt_data,
          fmt::format("{}: label {} is {}, but the classes are 0 to {}; check the file and "
                      "model.classes",
                      labels_name, i, label, classes - 1)};
  }
  ImageDataset set;
  set.count_ = images.shape[0];
  set.height_ = images.shape[1];
  set.width_ = images.shape[2];
  set.content_hash_ = hash_of(images, labels);
  set.images_ = std::move(images.data);
  set.labels_ = std::move(labels.data);
  return set;
}

std::span<const std::byte> ImageDataset::image(std::uint64_t index) const {
  TROUPE_CHECK(index < count_, fmt::format("image {} of {}", index, count_));
  return images_.bytes().subspan(index * image_bytes(), image_bytes());
}

std::uint8_t ImageDataset::label(std::uint64_t index) const {
  TROUPE_CHECK(index < count_, fmt::format("label {} of {}", index, count_));
  return std::to_integer<std::uint8_t>(labels_.bytes()[index]);
}

Status ImageDataset::check_room(std::uint64_t samples, const Buffer& images,
                                const Buffer& labels) const {
  const std::uint64_t image_room = images.size() / image_bytes();
  const std::uint64_t label_room = labels.size() / sizeof(std::int32_t);
  if (samples <= image_room && samples <= label_room) return {};
  return {Code::invalid_argument,
          fmt::format("{} samples do not fit buffers with room for {} images and {} labels",
                      samples, image_room, label_room)};
}

void ImageDataset::copy(std::uint64_t from, std::uint64_t to, Buffer& images,
                        Buffer& labels) const {
  std::memcpy(images.data() + to * image_bytes(), image(from).data(), image_bytes());
  const std::int32_t wide = label(from);
  std::memcpy(labels.data() + to * sizeof(wide), &wide, sizeof(wide));
}

Status ImageDataset::gather(std::span<const std::uint32_t> indices, Buffer& images,
                            Buffer& labels) const {
  TROUPE_TRY(check_room(indices.size(), images, labels));
  for (const std::uint32_t index : indices)
    if (index >= count_)
      return {Code::invalid_argument, fmt::format("there is no sample {} among {}", index, count_)};
  for (std::size_t i = 0; i < indices.size(); ++i) copy(indices[i], i, images, labels);
  return {};
}

Status ImageDataset::gather_run(std::uint64_t first, std::uint64_t count, Buffer& images,
                                Buffer& labels) const {
  TROUPE_TRY(check_room(count, images, labels));
  if (first > count_ || count > count_ - first)
    return {Code::invalid_argument,
            fmt::format("there are no samples {} to {} among {}", first, first + count, count_)};
  for (std::uint64_t i = 0; i < count; ++i) copy(first + i, i, images, labels);
  return {};
}

}  // namespace troupe::train
