#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "actors/data/dataset.hpp"
#include "actors/data/image_folder.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// Tar files in WebDataset's layout, decoded when a sample is read: u8 [3, size, size] with labels
/// []. A sample is two entries of one name that follow each other, NAME.jpg, NAME.jpeg or NAME.png
/// and NAME.cls, the class as a decimal number; entries NAME.* of other kinds are left out.
///
/// Samples are in the order of the shards' names and of the entries in them.
class TarDataset final : public Dataset {
public:
  /// A tar file, or a folder of which all files called *.tar are the shards. Reads the headers of
  /// all entries, once.
  /// Errors: `not_found`, `io_error`; `corrupt_data` naming file and byte for what is no tar file
  /// or is cut off, an image without a class or a class without an image, and a class that is no
  /// number below `options.classes`.
  static Result<std::unique_ptr<TarDataset>> open(const std::filesystem::path& path,
                                                  const PictureOptions& options);
  ~TarDataset() override;

  std::uint64_t count() const override { return samples_.size(); }
  const SampleLayout& layout() const override { return layout_; }
  /// Over names, sizes and classes of all samples, and a MiB of each shard's content.
  const std::string& content_hash() const override { return content_hash_; }
  Status read(std::uint64_t index, Use use, std::span<std::byte> input,
              std::span<std::byte> labels) const override;

private:
  struct Shards;
  struct Sample {
    std::uint64_t offset = 0;  ///< of the image's bytes
    std::uint32_t size = 0;
    std::uint32_t shard = 0;
    std::uint32_t label = 0;
  };
  explicit TarDataset(const PictureOptions& options);
  Status scan(const std::filesystem::path& shard);

  const PictureOptions options_;
  const SampleLayout layout_;
  const std::unique_ptr<Shards> shards_;
  std::vector<Sample> samples_;
  std::string content_hash_;
};

}  // namespace troupe::train
