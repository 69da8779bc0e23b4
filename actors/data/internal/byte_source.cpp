#include "actors/data/internal/byte_source.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "actors/data/internal/file.hpp"

namespace troupe::train::internal {
namespace {

using std::filesystem::path;

/// A file's own bytes.
class PlainFile final : public ByteSource {
public:
  explicit PlainFile(std::unique_ptr<File> file) : file_(std::move(file)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    TROUPE_ASSIGN(const std::size_t got, file_->read_at(offset_, out));
    offset_ += got;
    return got;
  }

  std::uint64_t max_bytes() const override { return file_->size(); }
  const char* unit() const override { return ""; }
  const path& file() const { return file_->path(); }

private:
  std::unique_ptr<File> file_;
  std::uint64_t offset_ = 0;
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
  TROUPE_ASSIGN(auto opened, File::open(file));
  std::byte magic[2]{};
  TROUPE_ASSIGN(const std::size_t got, opened->read_at(0, magic));
  auto plain = std::make_unique<PlainFile>(std::move(opened));
  const bool gzip = got == 2 && magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
  if (gzip) return std::unique_ptr<ByteSource>(std::make_unique<GzipFile>(std::move(plain)));
  return std::unique_ptr<ByteSource>(std::move(plain));
}

}  // namespace troupe::train::internal
