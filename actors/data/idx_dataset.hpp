#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "actors/data/dataset.hpp"
#include "actors/data/idx.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// Labelled grey images in memory: u8 [1, height, width] with labels [].
class IdxDataset final : public Dataset {
public:
  /// Reads IDX files: images [N, height, width], labels [N].
  /// Errors: those of read_idx; `corrupt_data` naming the file for wrong dimensions, counts that
  /// differ and a label that is not below `classes`.
  static Result<std::unique_ptr<IdxDataset>> load(const std::filesystem::path& images,
                                                  const std::filesystem::path& labels,
                                                  std::uint32_t classes);

  std::uint64_t count() const override { return count_; }
  const SampleLayout& layout() const override { return layout_; }
  /// Over shape, images and labels, all of them.
  const std::string& content_hash() const override { return content_hash_; }
  Status read(std::uint64_t index, Use use, std::span<std::byte> input,
              std::span<std::byte> labels) const override;

private:
  IdxDataset() = default;

  std::uint64_t count_ = 0;
  SampleLayout layout_;
  Buffer images_;
  Buffer labels_;
  std::string content_hash_;
};

}  // namespace troupe::train
