#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "actors/data/dataset.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// How pictures of any size become samples of one.
struct PictureOptions {
  std::uint32_t classes = 10;
  std::uint32_t size = 224;  ///< height and width of a sample
  /// In training a random region is scaled to the size and mirrored or not; otherwise the middle.
  bool crop_and_flip = false;
  std::uint64_t seed = 0;  ///< of that
};

/// A folder with a folder of JPEG and PNG files for each class, decoded when they are read: u8
/// [3, size, size] with labels [].
///
/// Classes are the folders in the order of their names' bytes, and samples the files in the order
/// of class and name: the same on every machine.
class ImageFolder final : public Dataset {
public:
  /// Lists the folder; names that begin with a dot are left out.
  /// Errors: `not_found`, `io_error`; `corrupt_data` naming the entry if there are more folders
  /// than classes, a folder without files, a file that is not called .jpg, .jpeg or .png, or
  /// something else in a place where none is expected.
  static Result<std::unique_ptr<ImageFolder>> open(const std::filesystem::path& folder,
                                                   const PictureOptions& options);

  std::uint64_t count() const override { return files_.size(); }
  const SampleLayout& layout() const override { return layout_; }
  /// Over names and sizes of all files, and the content (of a large one: a MiB of it)
  /// of at most 1024 of them at equal distances.
  const std::string& content_hash() const override { return content_hash_; }
  Status read(std::uint64_t index, Use use, std::span<std::byte> input,
              std::span<std::byte> labels) const override;

private:
  struct Entry {
    std::string name;  ///< in its class's folder
    std::uint32_t label = 0;
  };
  ImageFolder(std::filesystem::path folder, const PictureOptions& options);
  Status add_class(const std::string& name);
  std::filesystem::path path_of(const Entry& entry) const;
  Status hash();

  const std::filesystem::path folder_;
  const PictureOptions options_;
  const SampleLayout layout_;
  std::vector<std::string> classes_;
  std::vector<Entry> files_;
  std::string content_hash_;
};

}  // namespace troupe::train
