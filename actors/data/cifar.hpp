#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "actors/data/dataset.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// Which of the sets of Krizhevsky, "Learning multiple layers of features from tiny images" (2009).
enum class CifarKind : std::uint8_t {
  cifar10,   ///< a record is a label and an image
  cifar100,  ///< a record is a coarse label, which is not used, a fine one and an image
};

struct CifarOptions {
  CifarKind kind = CifarKind::cifar10;
  std::uint32_t classes = 10;
  /// In training an image is cut out of a frame of 4 black pixels around it at a random place, and
  /// mirrored or not.
  bool crop_and_flip = false;
  std::uint64_t seed = 0;  ///< of that
};

/// CIFAR's images in memory: u8 [3, 32, 32] with labels [].
class CifarDataset final : public Dataset {
public:
  /// The files of a part in the folder that the binary version unpacks to, sorted by name: for
  /// training data_batch_*.bin or train.bin, for a test test_batch.bin or test.bin.
  /// Errors: `not_found` if there is none, `io_error`.
  static Result<std::vector<std::filesystem::path>> find_files(const std::filesystem::path& folder,
                                                               CifarKind kind, bool training);

  /// Reads the files' records, in their order.
  /// Errors: `not_found`, `io_error`, `resource_exhausted`; `corrupt_data` naming file and byte for
  /// a file that is no whole number of records, and for a label that is not below the classes.
  static Result<std::unique_ptr<CifarDataset>> load(const std::vector<std::filesystem::path>& files,
                                                    const CifarOptions& options);

  std::uint64_t count() const override { return count_; }
  const SampleLayout& layout() const override { return layout_; }
  /// Over all records.
  const std::string& content_hash() const override { return content_hash_; }
  Status read(std::uint64_t index, Use use, std::span<std::byte> input,
              std::span<std::byte> labels) const override;

private:
  explicit CifarDataset(const CifarOptions& options) : options_(options) {}

  const CifarOptions options_;
  const SampleLayout layout_{kernels::DType::u8, {3, 32, 32}, {}};
  std::uint64_t count_ = 0;
  Buffer records_;
  std::string content_hash_;
};

}  // namespace troupe::train
