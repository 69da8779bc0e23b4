#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "runtime/base/status.hpp"

namespace troupe::train::internal {

/// A regular file that is read at any place. Not mapped: reading a mapped file that has become
/// shorter would end the process, where this gives an error.
///
/// Ownership: the descriptor.
/// Threads:   any.
/// Failure:   `not_found`, `io_error`; sentences name the file.
class File {
public:
  /// Errors: also `invalid_argument` for what is no regular file, `corrupt_data` for an empty one.
  static Result<std::unique_ptr<File>> open(const std::filesystem::path& path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// In bytes, when it was opened.
  std::uint64_t size() const { return size_; }

  /// Fills `out` from byte `offset` on; fewer bytes mean the file's end.
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// The same, where the file's end is `corrupt_data` that names the offset.
  Status read_exactly(std::uint64_t offset, std::span<std::byte> out) const;

private:
  File(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

/// The operating system's error `number` as a sentence: "cannot open FILE: ...".
Error system_error(std::string_view what, const std::filesystem::path& file, int number);

}  // namespace troupe::train::internal
