#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.hpp"

namespace troupe::control {

/// A lock on a file, which the operating system lets go when the process ends, however it ends. The
/// file holds its owner's name, for those that wait, and stays.
///
/// Threads: one at a time, except in_place().
class FileLock {
public:
  /// Takes the lock, creating the file; nullopt while another holds it. Errors: `not_found` for a
  /// missing folder, `permission_denied`, `io_error`.
  static Result<std::optional<FileLock>> take(const std::string& path);
  /// The name that an owner wrote; empty if it cannot be read.
  static std::string owner(const std::string& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  /// Lets go.
  ~FileLock();

  Status write_owner(std::string_view name);
  /// Whether the path still names the locked file: if not, others lock another one.
  bool in_place() const;

private:
  FileLock(std::string path, int file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  int file_ = -1;
};

/// What the operating system said about a path, as an Error with what to do.
Error file_error(const std::string& path, int number);

}  // namespace troupe::control
