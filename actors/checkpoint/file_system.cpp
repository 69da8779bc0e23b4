#include "actors/checkpoint/file_system.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::train {
namespace {

using std::filesystem::path;

/// "cannot <what> <file>: <reason>"; the remedy where it is plain.
Error system_error(std::string_view what, const path& file, int number) {
  const std::string reason = std::generic_category().message(number);
  const auto sentence = [&](std::string_view remedy) {
    return fmt::format("cannot {} {}: {}{}", what, file.native(), reason, remedy);
  };
  switch (number) {
    case ENOENT:
      return {Code::not_found, sentence("; check the name")};
    case ENOTDIR:
      return {Code::invalid_argument, sentence("; give the name of a folder")};
    case EISDIR:
      return {Code::invalid_argument, sentence("; move it away, or choose another name")};
    case EEXIST:
      return {Code::already_exists, sentence("")};
    case ENOSPC:
    case EDQUOT:
      return {Code::io_error, sentence("; free some space there or choose another folder")};
    case EACCES:
    case EPERM:
    case EROFS:
      return {Code::io_error, sentence("; check the permissions")};
    default:
      return {Code::io_error, sentence("")};
  }
}

/// A file descriptor that is closed in the end.
class Descriptor {
public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

private:
  int fd_;
};

class PosixWritableFile final : public WritableFile {
public:
  PosixWritableFile(int fd, path file) : fd_(fd), file_(std::move(file)) {}

  Status write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error("write", file_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  Status sync() override {
    if (::fsync(fd_.get()) != 0) return system_error("sync", file_, errno);
    return {};
  }

  Status close() override {
    if (::close(fd_.release()) != 0) return system_error("close", file_, errno);
    return {};
  }

private:
  Descriptor fd_;
  path file_;
};

}  // namespace

Result<std::unique_ptr<WritableFile>> PosixFileSystem::create(const path& file) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("create", file, errno);
  return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(fd, file));
}

Result<Buffer> PosixFileSystem::read(const path& file) {
  // Non-blocking, because opening a pipe would wait for a writer.
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return system_error("open", file, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_error("look at", file, errno);
  if (!S_ISREG(info.st_mode))
    return Error{Code::invalid_argument, fmt::format("{} is not a regular file", file.native())};
  TROUPE_ASSIGN(Buffer content, Buffer::allocate(static_cast<std::size_t>(info.st_size)));
  auto rest = content.bytes();
  while (!rest.empty()) {
    const ssize_t got = ::read(fd.get(), rest.data(), rest.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", file, errno);
    if (got == 0)
      return Error{Code::io_error, fmt::format("{} got shorter while it was read; something else "
                                               "writes to it",
                                               file.native())};
    rest = rest.subspan(static_cast<std::size_t>(got));
  }
  return content;
}

Status PosixFileSystem::rename(const path& from, const path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return system_error("rename", from, errno);
  return {};
}

Status PosixFileSystem::remove(const path& file) {
  if (::unlink(file.c_str()) != 0) return system_error("remove", file, errno);
  return {};
}

Status PosixFileSystem::create_directory(const path& directory) {
  std::error_code error;
  if (!std::filesystem::create_directories(directory, error)) {
    if (error) return system_error("create the folder", directory, error.value());
    if (!std::filesystem::is_directory(directory, error))
      return Error{Code::invalid_argument,
                   fmt::format("{} is not a folder; choose another name", directory.native())};
    return {};
  }
  const path above = directory.parent_path();
  return sync_directory(above.empty() ? "." : above);
}

Status PosixFileSystem::sync_directory(const path& directory) {
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return system_error("open the folder", directory, errno);
  // Some file systems have no such thing and say EINVAL; there is nothing else to be done there.
  if (::fsync(fd.get()) != 0 && errno != EINVAL)
    return system_error("sync the folder", directory, errno);
  return {};
}

Result<std::vector<std::string>> PosixFileSystem::list(const path& directory) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator at(directory, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error))
    names.push_back(at->path().filename().native());
  if (error) return system_error("list the folder", directory, error.value());
  return names;
}

}  // namespace troupe::train
