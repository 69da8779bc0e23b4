#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "actors/checkpoint/file_system.hpp"
#include "actors/checkpoint/safetensors.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// A job's checkpoints in one folder: `step-00000120.safetensors` holds the state after 120 steps,
/// `final.safetensors` the result.
///
/// Ownership: one writer for a folder at a time; any number may read meanwhile.
/// Threads:   one at a time.
/// Failure:   a save that fails leaves all earlier checkpoints as they were. A file that is torn or
///            altered is never loaded.
class CheckpointStore {
public:
  /// Does not touch the folder; saving makes it. `keep` (at least 1) checkpoints stay.
  CheckpointStore(std::filesystem::path directory, std::uint32_t keep,
                  std::shared_ptr<FileSystem> files = std::make_shared<PosixFileSystem>());

  /// Writes the state after `step` steps, then removes those before the `keep` newest ones up to
  /// this one. The step is put into the metadata.
  /// Errors: those of write_safetensors.
  Result<WrittenFile> save(std::uint64_t step, std::vector<TensorView> tensors, Metadata metadata);

  /// Writes the job's result.
  Result<WrittenFile> save_final(std::vector<TensorView> tensors, const Metadata& metadata);

  /// Makes the folder, and makes and removes an empty file in it; `who` is part of its name.
  /// Errors: those of the file system.
  Status check_writable(const std::string& who);

  struct Entry {
    std::uint64_t step = 0;
    std::filesystem::path path;
  };
  /// What is there by name, newest first. Empty if there is no folder.
  Result<std::vector<Entry>> list() const;

  struct Found {
    Entry entry;
    TensorFile content;
    /// A sentence for each newer one that could not be used.
    std::vector<std::string> damaged;
  };
  /// The newest that holds together.
  /// Errors: `not_found` if there are none, `corrupt_data` if none holds together.
  Result<Found> latest() const;

  /// The one in `file`. Errors: those of read_safetensors, `corrupt_data` if it is not a
  /// checkpoint.
  Result<Found> load(const std::filesystem::path& file) const;

  /// Removes all checkpoints and the result: for a job that starts afresh, so that a later resume
  /// cannot go on from a run before it.
  Status clear();

private:
  Status prune(std::uint64_t step);

  std::filesystem::path directory_;
  std::uint32_t keep_;
  std::shared_ptr<FileSystem> files_;
};

}  // namespace troupe::train
