#include "actors/data/internal/file.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::train::internal {

Error system_error(std::string_view what, const std::filesystem::path& file, int number) {
  const bool missing = number == ENOENT || number == ENOTDIR;
  return {missing ? Code::not_found : Code::io_error,
          fmt::format("cannot {} {}: {}; check {}", what, file.native(),
                      std::generic_category().message(number),
                      missing ? "its name" : "its permissions and its disk")};
}

Result<std::unique_ptr<File>> File::open(const std::filesystem::path& path) {
  // Non-blocking, because opening a pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_error("open", path, errno);
  std::unique_ptr<File> opened(new File(path, descriptor));
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return system_error("look at", path, errno);
  if (!S_ISREG(info.st_mode))
    return Error{Code::invalid_argument,
                 fmt::format("{} is not a regular file; name a data file", path.native())};
  opened->size_ = static_cast<std::uint64_t>(info.st_size);
  if (opened->size_ == 0)
    return Error{Code::corrupt_data, fmt::format("{} is empty; fetch it again", path.native())};
  return opened;
}

File::~File() {
  ::close(descriptor_);
}

Result<std::size_t> File::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t got = ::pread(descriptor_, out.data() + filled, out.size() - filled,
                                static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", path_, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

Status File::read_exactly(std::uint64_t offset, std::span<std::byte> out) const {
  TROUPE_ASSIGN(const std::size_t got, read_at(offset, out));
  if (got == out.size()) return {};
  return {Code::corrupt_data,
          fmt::format("{} at byte {}: the file is truncated: {} of {} bytes are there; fetch it "
                      "again",
                      path_.native(), offset, got, out.size())};
}

}  // namespace troupe::train::internal
