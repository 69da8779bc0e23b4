#include "actors/data/idx.hpp"

#include <array>

#include <fmt/format.h>

#include "actors/data/internal/byte_source.hpp"

namespace troupe::train {
namespace {

constexpr std::byte kUnsignedByte{0x08};
constexpr std::size_t kMaxDimensions = 8;

/// Reads one array and counts the bytes, for errors.
class IdxReader {
public:
  IdxReader(internal::ByteSource& source, const std::filesystem::path& file)
      : source_(source), file_(file) {}

  Result<IdxArray> read(const IdxLimits& limits) {
    IdxArray array;
    TROUPE_ASSIGN(array.shape, read_shape());
    TROUPE_ASSIGN(const std::uint64_t bytes, check_size(array.shape, limits));
    TROUPE_ASSIGN(array.data, Buffer::allocate(static_cast<std::size_t>(bytes)));
    TROUPE_TRY(read_exactly(array.data.bytes(), "its data"));
    std::byte more{};
    TROUPE_ASSIGN(const std::size_t got, source_.read({&more, 1}));
    if (got != 0)
      return damaged(
          fmt::format("there is more after the {} bytes of data that its header says", bytes));
    return array;
  }

private:
  Error damaged(std::string_view what) const {
    return {Code::corrupt_data, fmt::format("{} at byte {}{}: {}; fetch the file again",
                                            file_.native(), offset_, source_.unit(), what)};
  }

  Status read_exactly(std::span<std::byte> out, std::string_view what) {
    TROUPE_ASSIGN(const std::size_t got, source_.read(out));
    offset_ += got;
    if (got == out.size()) return {};
    return damaged(fmt::format("the file is truncated: {} of the {} bytes of {} are there", got,
                               out.size(), what));
  }

  /// Two zero bytes, type, number of dimensions; then each extent as big-endian 32 bits.
  Result<std::vector<std::uint32_t>> read_shape() {
    std::array<std::byte, 4> magic{};
    TROUPE_TRY(read_exactly(magic, "its first four"));
    offset_ = 0;
    if (magic[0] != std::byte{0} || magic[1] != std::byte{0})
      return damaged(fmt::format("this is no IDX file, it begins with {:02x} {:02x}",
                                 std::to_integer<int>(magic[0]), std::to_integer<int>(magic[1])));
    offset_ = 2;
    if (magic[2] != kUnsignedByte)
      return damaged(
          fmt::format("elements are of type 0x{:02x}, but only unsigned bytes (0x08) can "
                      "be read",
                      std::to_integer<int>(magic[2])));
    offset_ = 3;
    const auto dimensions = std::to_integer<std::size_t>(magic[3]);
    if (dimensions == 0 || dimensions > kMaxDimensions)
      return damaged(
          fmt::format("it has {} dimensions, but 1 to {} can be read", dimensions, kMaxDimensions));
    offset_ = 4;
    std::vector<std::uint32_t> shape;
    for (std::size_t i = 0; i < dimensions; ++i) {
      std::array<std::byte, 4> extent{};
      TROUPE_TRY(read_exactly(extent, "an extent"));
      std::uint32_t value = 0;
      for (const std::byte b : extent) value = value << 8 | std::to_integer<std::uint32_t>(b);
      shape.push_back(value);
    }
    return shape;
  }

  /// The size that the header claims, before memory is taken for it.
  Result<std::uint64_t> check_size(const std::vector<std::uint32_t>& shape,
                                   const IdxLimits& limits) const {
    std::uint64_t bytes = 1;
    bool fits = true;
    for (const std::uint32_t extent : shape)
      fits = fits && !__builtin_mul_overflow(bytes, std::uint64_t{extent}, &bytes);
    if (!fits || bytes > source_.max_bytes())
      return damaged(
          fmt::format("its header says {} bytes of data, more than the file can hold; it "
                      "is truncated or damaged",
                      fits ? fmt::format("{}", bytes) : "2^64 and more"));
    if (bytes > limits.max_bytes)
      return Error{Code::resource_exhausted,
                   fmt::format("{} has {} bytes of data, but at most {} may be loaded",
                               file_.native(), bytes, limits.max_bytes)};
    return bytes;
  }

  internal::ByteSource& source_;
  const std::filesystem::path& file_;
  std::uint64_t offset_ = 0;
};

}  // namespace

Result<IdxArray> read_idx(const std::filesystem::path& file, const IdxLimits& limits) {
  TROUPE_ASSIGN(const auto source, internal::open_bytes(file));
  return IdxReader(*source, file).read(limits);
}

}  // namespace troupe::train
