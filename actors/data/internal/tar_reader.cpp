#include "actors/data/internal/tar_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace troupe::train::internal {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kMostText = std::uint64_t{64} << 10;

using Header = std::array<std::byte, kBlock>;

/// A field's text, which ends at its first zero.
std::string text(const Header& header, std::size_t at, std::size_t size) {
  const auto* const begin = reinterpret_cast<const char*>(header.data()) + at;
  return {begin, std::find(begin, begin + size, '\0')};
}

/// Octal digits, or, if the first bit is set, GNU's big-endian binary. None if it is neither.
std::optional<std::uint64_t> number(const Header& header, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  if (header[at] == std::byte{0x80}) {
    for (std::size_t i = 1; i < size; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | std::to_integer<std::uint64_t>(header[at + i]);
    }
    return value;
  }
  const std::string digits = text(header, at, size);
  const auto first = digits.find_first_not_of(' ');
  if (first == std::string::npos) return std::nullopt;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data() + first, end, value, 8);
  const bool clean = std::all_of(stop, end, [](char c) { return c == ' '; });
  if (error != std::errc() || !clean) return std::nullopt;
  return value;
}

/// The bytes' sum, those of the field itself taken as blanks.
bool has_its_checksum(const Header& header) {
  constexpr std::size_t kAt = 148, kSize = 8;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i)
    sum += i >= kAt && i < kAt + kSize ? std::uint64_t{' '}
                                       : std::to_integer<std::uint64_t>(header[i]);
  return number(header, kAt, kSize) == sum;
}

}  // namespace

Error TarReader::damaged(std::string_view what) const {
  return {Code::corrupt_data,
          fmt::format("{} at byte {}: {}; fetch the file again", file_.path().native(), at_, what)};
}

Result<std::optional<TarEntry>> TarReader::next() {
  for (;;) {
    Header header{};
    // A file may end without the two empty blocks.
    if (at_ == file_.size()) return std::optional<TarEntry>();
    if (file_.size() - at_ < kBlock) return damaged("a part of a tar header is all that is left");
    TROUPE_TRY(file_.read_exactly(at_, header));
    if (std::all_of(header.begin(), header.end(), [](std::byte b) { return b == std::byte{0}; }))
      return std::optional<TarEntry>();
    if (!has_its_checksum(header)) return damaged("this is no tar header, its checksum is wrong");
    auto size = number(header, 124, 12);
    const char type = static_cast<char>(header[156]);
    const bool about_next = type == 'x' || type == 'L' || type == 'K' || type == 'g';
    if (!about_next && long_size_) size = long_size_;
    const std::uint64_t offset = at_ + kBlock;
    if (!size || *size > file_.size() - offset)
      return damaged(size
                         ? fmt::format("the entry of {} bytes goes on behind the file's end", *size)
                         : "the entry's size is no number");
    if (type == 'L') {
      TROUPE_ASSIGN(long_name_, read_text(*size));
      long_name_.resize(std::min(long_name_.size(), long_name_.find('\0')));
    } else if (type == 'x') {
      TROUPE_TRY(read_pax(*size));
    }
    TarEntry entry{std::exchange(long_name_, about_next ? long_name_ : ""), at_, offset, *size};
    if (!about_next) long_size_.reset();
    // Padded to whole blocks, though the last one of a file may be cut.
    at_ = std::min(file_.size(), offset + (*size + kBlock - 1) / kBlock * kBlock);
    if (type != '0' && type != '\0') continue;
    if (entry.name.empty()) {
      const bool ustar = text(header, 257, 5) == "ustar";
      const std::string prefix = ustar ? text(header, 345, 155) : "";
      entry.name = prefix + (prefix.empty() ? "" : "/") + text(header, 0, 100);
    }
    return std::optional(std::move(entry));
  }
}

Result<std::string> TarReader::read_text(std::uint64_t size) {
  if (size > kMostText)
    return damaged(
        fmt::format("a name or a list of attributes has {} bytes, but at most {} are "
                    "read",
                    size, kMostText));
  std::string content(static_cast<std::size_t>(size), '\0');
  TROUPE_TRY(file_.read_exactly(at_ + kBlock, std::as_writable_bytes(std::span(content))));
  return content;
}

/// Records "LENGTH KEY=VALUE\n", where the length is of the whole record.
Status TarReader::read_pax(std::uint64_t size) {
  TROUPE_ASSIGN(const std::string content, read_text(size));
  std::string_view left = content;
  while (!left.empty()) {
    std::size_t length = 0;
    const auto [stop, error] = std::from_chars(left.data(), left.data() + left.size(), length);
    const auto digits = static_cast<std::size_t>(stop - left.data());
    if (error != std::errc() || length <= digits + 1 || length > left.size() ||
        left[digits] != ' ' || left[length - 1] != '\n')
      return damaged("its list of attributes is none");
    const auto record = left.substr(digits + 1, length - digits - 2);
    left.remove_prefix(length);
    const auto equals = std::min(record.find('='), record.size());
    const auto key = record.substr(0, equals);
    const auto value = record.substr(std::min(equals + 1, record.size()));
    if (key == "path") long_name_ = value;
    if (key != "size") continue;
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
    if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size())
      return damaged("the entry's size is no number");
    long_size_ = number;
  }
  return {};
}

}  // namespace troupe::train::internal
