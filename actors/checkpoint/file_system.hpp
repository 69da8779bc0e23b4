#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::train {

/// A new file that is being written. Closed, without a promise about its content, when destroyed.
class WritableFile {
public:
  virtual ~WritableFile() = default;
  /// All of `bytes`, or an error and an unknown part of them.
  virtual Status write(std::span<const std::byte> bytes) = 0;
  /// Returns when the content would survive a loss of power.
  virtual Status sync() = 0;
  virtual Status close() = 0;
};

/// What checkpoints need of a file system: the seam at which tests make it fail.
///
/// Threads: any.
/// Failure: `not_found`, `already_exists`, else `io_error`; sentences name the file and the
///          system's reason.
class FileSystem {
public:
  virtual ~FileSystem() = default;
  /// Creates `file`; `already_exists` if there is one.
  virtual Result<std::unique_ptr<WritableFile>> create(const std::filesystem::path& file) = 0;
  /// The whole content of a regular file.
  virtual Result<Buffer> read(const std::filesystem::path& file) = 0;
  /// Replaces `to` in one go.
  virtual Status rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual Status remove(const std::filesystem::path& file) = 0;
  /// With all above it, as far as they are missing.
  virtual Status create_directory(const std::filesystem::path& directory) = 0;
  /// Makes created, renamed and removed names survive a loss of power.
  virtual Status sync_directory(const std::filesystem::path& directory) = 0;
  /// Names of what is in it, in no order. `not_found` if it is not there.
  virtual Result<std::vector<std::string>> list(const std::filesystem::path& directory) = 0;
};

/// The machine's.
class PosixFileSystem final : public FileSystem {
public:
  Result<std::unique_ptr<WritableFile>> create(const std::filesystem::path& file) override;
  Result<Buffer> read(const std::filesystem::path& file) override;
  Status rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  Status remove(const std::filesystem::path& file) override;
  Status create_directory(const std::filesystem::path& directory) override;
  Status sync_directory(const std::filesystem::path& directory) override;
  Result<std::vector<std::string>> list(const std::filesystem::path& directory) override;
};

}  // namespace troupe::train
