#include "runtime/remoting/internal/wire.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <caf/sec.hpp>

namespace troupe::remoting {

static_assert(std::endian::native == std::endian::little,
              "numbers travel in the order that they have in memory");

void Scratch::grow(std::size_t bytes) {
  const auto wanted = std::max({capacity_ * 2, size_ + bytes, std::size_t{512}});
  auto larger = std::make_unique_for_overwrite<std::byte[]>(wanted);
  if (size_ != 0) std::memcpy(larger.get(), data_.get(), size_);
  data_ = std::move(larger);
  capacity_ = wanted;
}

void Scratch::trim(std::size_t keep) {
  if (capacity_ <= keep) return;
  data_.reset();
  size_ = capacity_ = 0;
}

void WireWriter::write_count(std::uint64_t count) {
  std::uint8_t groups[10];
  std::size_t n = 0;
  while (count > 0x7f) {
    groups[n++] = static_cast<std::uint8_t>((count & 0x7f) | 0x80);
    count >>= 7;
  }
  groups[n++] = static_cast<std::uint8_t>(count);
  out_.append(groups, n);
}

void WireWriter::write_string(std::string_view text) {
  write_count(text.size());
  out_.append(text.data(), text.size());
}

caf::error WireWriter::begin_object(std::uint16_t& number, std::string& name) {
  put(number);
  if (number == 0) write_string(name);
  return {};
}

caf::error WireWriter::begin_sequence(std::size_t& size) {
  write_count(size);
  return {};
}

caf::error WireWriter::apply_raw(std::size_t bytes, void* data) {
  out_.append(data, bytes);
  return {};
}

caf::error WireWriter::apply_impl(long double& x) {
  // Its padding is left out: ten bytes on x86-64.
  char text[64];
  const auto n = std::snprintf(text, sizeof text, "%La", x);
  write_string({text, static_cast<std::size_t>(n)});
  return {};
}

caf::error WireWriter::apply_impl(std::string& x) {
  write_string(x);
  return {};
}

caf::error WireWriter::apply_impl(std::u16string& x) {
  write_count(x.size());
  out_.append(x.data(), x.size() * sizeof(char16_t));
  return {};
}

caf::error WireWriter::apply_impl(std::u32string& x) {
  write_count(x.size());
  out_.append(x.data(), x.size() * sizeof(char32_t));
  return {};
}

WireReader::WireReader(caf::execution_unit* context, std::span<const std::byte> bytes,
                       std::span<Buffer> segments)
    : caf::deserializer(context),
      bytes_(bytes),
      segments_(segments),
      counts_left_(kCountsPerByte * bytes.size()),
      stack_(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))) {}

bool WireReader::too_deep() const noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return (here < stack_ ? stack_ - here : here - stack_) > kMaxStackBytes;
}

caf::error WireReader::apply_raw(std::size_t bytes, void* data) {
  if (bytes > bytes_.size()) return caf::sec::end_of_stream;
  if (bytes != 0) std::memcpy(data, bytes_.data(), bytes);
  bytes_ = bytes_.subspan(bytes);
  return {};
}

caf::error WireReader::read_count(std::uint64_t& count) {
  count = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (bytes_.empty()) return caf::sec::end_of_stream;
    const auto group = static_cast<std::uint64_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    count |= (group & 0x7f) << shift;
    if ((group & 0x80) == 0) return {};
  }
  return caf::sec::end_of_stream;
}

caf::error WireReader::read_string(std::string_view& text) {
  std::uint64_t size = 0;
  if (auto error = read_count(size)) return error;
  if (size > bytes_.size()) return caf::sec::end_of_stream;
  text = {reinterpret_cast<const char*>(bytes_.data()), static_cast<std::size_t>(size)};
  bytes_ = bytes_.subspan(static_cast<std::size_t>(size));
  return {};
}

caf::error WireReader::take_segment(std::uint64_t size, Buffer& buffer) {
  if (next_segment_ == segments_.size() || segments_[next_segment_].size() != size)
    return caf::sec::end_of_stream;
  buffer = std::move(segments_[next_segment_++]);
  return {};
}

caf::error WireReader::begin_object(std::uint16_t& number, std::string& name) {
  if (too_deep()) return caf::sec::end_of_stream;
  if (auto error = get(number)) return error;
  return number == 0 ? apply_impl(name) : caf::error{};
}

caf::error WireReader::begin_sequence(std::size_t& size) {
  std::uint64_t count = 0;
  if (auto error = read_count(count)) return error;
  if (too_deep() || count > kBitsPerByte * bytes_.size() || count > counts_left_)
    return caf::sec::end_of_stream;
  counts_left_ -= count;
  size = static_cast<std::size_t>(count);
  return {};
}

caf::error WireReader::apply_impl(long double& x) {
  std::string text;
  if (auto error = apply_impl(text)) return error;
  x = std::strtold(text.c_str(), nullptr);
  return {};
}

caf::error WireReader::apply_impl(std::string& x) {
  std::string_view text;
  if (auto error = read_string(text)) return error;
  x.assign(text);
  return {};
}

template <class Text>
caf::error WireReader::get_text(Text& x) {
  std::uint64_t size = 0;
  if (auto error = read_count(size)) return error;
  if (size > bytes_.size() / sizeof(typename Text::value_type)) return caf::sec::end_of_stream;
  x.resize(static_cast<std::size_t>(size));
  return apply_raw(x.size() * sizeof(typename Text::value_type), x.data());
}

caf::error WireReader::apply_impl(std::u16string& x) {
  return get_text(x);
}
caf::error WireReader::apply_impl(std::u32string& x) {
  return get_text(x);
}

}  // namespace troupe::remoting
