#include "actors/data/idx_dataset.hpp"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/data/internal/content_hash.hpp"

namespace troupe::train {
namespace {

std::string hash_of(const IdxArray& images, const IdxArray& labels) {
  internal::ContentHash hash;
  hash.add(std::as_bytes(std::span(images.shape)));
  hash.add(images.data.bytes());
  hash.add(labels.data.bytes());
  return hash.hex();
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

Result<std::unique_ptr<IdxDataset>> IdxDataset::load(const std::filesystem::path& images_file,
                                                     const std::filesystem::path& labels_file,
                                                     std::uint32_t classes) {
  TROUPE_ASSIGN(IdxArray images, read_idx(images_file));
  TROUPE_ASSIGN(IdxArray labels, read_idx(labels_file));
  TROUPE_TRY(check_shapes(images, labels, images_file.native(), labels_file.native()));
  for (std::size_t i = 0; i < labels.data.size(); ++i) {
    const auto label = std::to_integer<std::uint32_t>(labels.data.data()[i]);
    if (label >= classes)
      return Error{
          Code::corrupt_data,
          fmt::format("{}: label {} is {}, but the classes are 0 to {}; check the file and "
                      "model.classes",
                      labels_file.native(), i, label, classes - 1)};
  }
  std::unique_ptr<IdxDataset> set(new IdxDataset);
  set->count_ = images.shape[0];
  set->layout_.input = {1, images.shape[1], images.shape[2]};
  set->content_hash_ = hash_of(images, labels);
  set->images_ = std::move(images.data);
  set->labels_ = std::move(labels.data);
  return set;
}

Status IdxDataset::read(std::uint64_t index, Use, std::span<std::byte> input,
                        std::span<std::byte> labels) const {
  TROUPE_CHECK(index < count_, fmt::format("sample {} of {}", index, count_));
  const std::size_t bytes = layout_.input_bytes();
  std::memcpy(input.data(), images_.data() + index * bytes, bytes);
  const auto label = std::to_integer<std::int32_t>(labels_.data()[index]);
  std::memcpy(labels.data(), &label, sizeof(label));
  return {};
}

}  // namespace troupe::train
