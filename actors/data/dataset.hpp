#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "actors/data/idx.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::train {

/// Labelled grey images in memory.
///
/// Ownership: copies share the bytes, which never change.
/// Threads:   any.
/// Invariant: there is at least one image; every label is below the number of classes.
class ImageDataset {
public:
  /// Reads IDX files: images [N, height, width], labels [N].
  /// Errors: those of read_idx; `corrupt_data` naming the file for wrong dimensions, counts that
  /// differ and a label that is not below `classes`.
  static Result<ImageDataset> load(const std::filesystem::path& images,
                                   const std::filesystem::path& labels, std::uint32_t classes);

  /// From arrays in memory; the names are what errors call them.
  static Result<ImageDataset> make(IdxArray images, IdxArray labels, std::uint32_t classes,
                                   const std::string& images_name = "images",
                                   const std::string& labels_name = "labels");

  std::uint64_t count() const { return count_; }
  std::uint32_t height() const { return height_; }
  std::uint32_t width() const { return width_; }
  std::size_t image_bytes() const { return std::size_t{height_} * width_; }

  /// Pixels, row by row. `index` must be below count().
  std::span<const std::byte> image(std::uint64_t index) const;
  std::uint8_t label(std::uint64_t index) const;

  /// 32 hex digits (XXH3-128) over shape, images and labels: nodes compare it before they start.
  const std::string& content_hash() const { return content_hash_; }

  /// Copies the samples `indices` to the start of `images` (u8 [n, height, width]) and `labels`
  /// (i32 [n]).
  /// Errors: `invalid_argument` if an index is not below count() or a buffer is too small.
  Status gather(std::span<const std::uint32_t> indices, Buffer& images, Buffer& labels) const;
  /// The same for the `count` samples from `first`.
  Status gather_run(std::uint64_t first, std::uint64_t count, Buffer& images, Buffer& labels) const;

private:
  ImageDataset() = default;
  Status check_room(std::uint64_t samples, const Buffer& images, const Buffer& labels) const;
  void copy(std::uint64_t from, std::uint64_t to, Buffer& images, Buffer& labels) const;

  std::uint64_t count_ = 0;
  std::uint32_t height_ = 0;
  std::uint32_t width_ = 0;
  Buffer images_;
  Buffer labels_;
  std::string content_hash_;
};

}  // namespace troupe::train
