#include "runtime/control/internal/file_lock.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::control {

Error file_error(const std::string& path, int number) {
  const std::string what = std::strerror(number);
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return {Code::not_found,
              fmt::format("'{}' cannot be created ({}); make its folder first", path, what)};
    case EACCES:
    case EPERM:
    case EROFS:
      return {Code::permission_denied,
              fmt::format("'{}' cannot be opened for writing ({}); choose a store that this user "
                          "may write",
                          path, what)};
    default:
      return {Code::io_error,
              fmt::format("'{}' cannot be used as a store ({}); choose another path", path, what)};
  }
}

Result<std::optional<FileLock>> FileLock::take(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return file_error(path, errno);
  FileLock lock(path, file);
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<FileLock>();
    if (errno != EINTR) return file_error(path, errno);
  }
  // Somebody may have removed it between the two calls.
  if (!lock.in_place()) return std::optional<FileLock>();
  return std::optional<FileLock>(std::move(lock));
}

std::string FileLock::owner(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[256];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  ::close(file);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

FileLock::~FileLock() {
  // Not by closing alone: a child that was forked at the wrong moment has the file open too.
  if (file_ < 0) return;
  ::flock(file_, LOCK_UN);
  ::close(file_);
}

Status FileLock::write_owner(std::string_view name) {
  if (::ftruncate(file_, 0) == 0 &&
      ::pwrite(file_, name.data(), name.size(), 0) == static_cast<ssize_t>(name.size()))
    return {};
  return file_error(path_, errno);
}

bool FileLock::in_place() const {
  struct stat held {};
  struct stat named {};
  return ::fstat(file_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

}  // namespace troupe::control
