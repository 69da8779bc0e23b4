#include "actors/data/internal/byte_source.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace troupe::train::internal {
namespace {

using std::filesystem::path;

Error system_error(std::string_view what, const path& file, int number) {
  const bool missing = number == ENOENT;
  return {missing ? Code::not_found : Code::io_error,
          fmt::format("cannot {} {}: {}; check {}", what, file.native(),
                      std::generic_category().message(number),
                      missing ? "its name" : "its permissions and its disk")};
}

/// A regular file that is being read.
class PlainFile final : public ByteSource {
public:
  static Result<std::unique_ptr<PlainFile>> open(const path& file) {
    // Non-blocking, because opening a pipe would wait for a writer.
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return system_error("open", file, errno);
    std::unique_ptr<PlainFile> opened(new PlainFile(file, fd));
    struct stat info {};
    if (::fstat(fd, &info) != 0) return system_error("look at", file, errno);
    if (!S_ISREG(info.st_mode))
      return Error{Code::invalid_argument,
                   fmt::format("{} is not a regular file; name a data file", file.native())};
    opened->size_ = static_cast<std::uint64_t>(info.st_size);
    if (opened->size_ == 0)
      return Error{Code::corrupt_data, fmt::format("{} is empty; fetch it again", file.native())};
    return opened;
  }

  ~PlainFile() override { ::close(fd_); }

  Result<std::size_t> read(std::span<std::byte> out) override {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const ssize_t got = ::read(fd_, out.data() + filled, out.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error("read", file_, errno);
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
    }
    return filled;
  }

  Status rewind() {
    if (::lseek(fd_, 0, SEEK_SET) != 0) return system_error("rewind", file_, errno);
    return {};
  }

  std::uint64_t max_bytes() const override { return size_; }
  const char* unit() const override { return ""; }
  const path& file() const { return file_; }

private:
  PlainFile(path file, int fd) : file_(std::move(file)), fd_(fd) {}

  path file_;
  int fd_;
  std::uint64_t size_ = 0;
};

/// Unpacks as it is read; never more than what was asked for and one block of packed bytes is held.
class GzipFile final : public ByteSource {
public:
  explicit GzipFile(std::unique_ptr<PlainFile> packed) : packed_(std::move(packed)) {
    // 16: gzip's header and trailer are expected and checked.
    constexpr int kGzip = 16;
    TROUPE_CHECK(inflateInit2(&stream_, MAX_WBITS + kGzip) == Z_OK, "zlib does not start");
  }
  ~GzipFile() override { inflateEnd(&stream_); }

  Result<std::size_t> read(std::span<std::byte> out) override {
    std::size_t filled = 0;
    while (filled < out.size() && !ended_) {
      constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in unsigned int
      const std::size_t wanted = std::min(out.size() - filled, kMost);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
      stream_.avail_out = static_cast<uInt>(wanted);
      TROUPE_TRY(advance());
      filled += wanted - stream_.avail_out;
    }
    return filled;
  }

  /// DEFLATE packs at most 1032 to 1 (zlib's manual).
  std::uint64_t max_bytes() const override { return packed_->max_bytes() * 1032; }
  const char* unit() const override { return " unpacked"; }

private:
  Error damaged(std::string_view what) const {
    return {Code::corrupt_data,
            fmt::format("{} is damaged at byte {}: {}; fetch it again", packed_->file().native(),
                        taken_ - stream_.avail_in, what)};
  }

  /// One step of zlib, with input if it has none.
  Status advance() {
    if (stream_.avail_in == 0) {
      TROUPE_ASSIGN(const std::size_t got, packed_->read(block_));
      if (got == 0 && between_members_) {
        ended_ = true;
        return {};
      }
      if (got == 0) return damaged("the gzip data is cut off");
      taken_ += got;
      stream_.next_in = reinterpret_cast<Bytef*>(block_.data());
      stream_.avail_in = static_cast<uInt>(got);
    }
    if (between_members_) {  // gzip files may be put one after the other
      inflateReset(&stream_);
      between_members_ = false;
    }
    switch (inflate(&stream_, Z_NO_FLUSH)) {
      case Z_OK:
      case Z_BUF_ERROR:  // it wants more input or more room, and gets it
        return {};
      case Z_STREAM_END:
        between_members_ = true;
        return {};
      case Z_MEM_ERROR:
        return Error{Code::resource_exhausted, "no memory to unpack gzip data"};
      default:
        return damaged(stream_.msg != nullptr ? stream_.msg : "not gzip data");
    }
  }

  std::unique_ptr<PlainFile> packed_;
  z_stream stream_{};
  std::vector<std::byte> block_ = std::vector<std::byte>(std::size_t{1} << 16);
  std::uint64_t taken_ = 0;
  bool between_members_ = false;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_bytes(const path& file) {
  TROUPE_ASSIGN(auto plain, PlainFile::open(file));
  std::byte magic[2]{};
  TROUPE_ASSIGN(const std::size_t got, plain->read(magic));
  TROUPE_TRY(plain->rewind());
  const bool gzip = got == 2 && magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
  if (gzip) return std::unique_ptr<ByteSource>(std::make_unique<GzipFile>(std::move(plain)));
  return std::unique_ptr<ByteSource>(std::move(plain));
}

}  // namespace troupe::train::internal
