#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <caf/deserializer.hpp>
#include <caf/serializer.hpp>

#include "runtime/memory/buffer.hpp"

namespace troupe::remoting {

/// Bytes that grow and are used again for the next message without giving memory back.
/// Threads: one.
class Scratch {
public:
  void clear() noexcept { size_ = 0; }
  void append(const void* data, std::size_t bytes) {
    if (capacity_ - size_ < bytes) grow(bytes);
    if (bytes != 0) std::memcpy(data_.get() + size_, data, bytes);
    size_ += bytes;
  }
  std::span<const std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  /// Gives back what one huge message took.
  void trim(std::size_t keep);

private:
  void grow(std::size_t bytes);

  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// Writes CAF values as they travel between nodes: little-endian numbers, counts in groups of seven
/// bits. Large Buffers are put aside, to be sent as segments.
///
/// Ownership: borrows the scratch and the list of segments.
/// Threads:   one.
class WireWriter final : public caf::serializer {
public:
  WireWriter(caf::execution_unit* context, Scratch& out, std::vector<Buffer>& segments)
      : caf::serializer(context), out_(out), segments_(segments) {}

  void write_string(std::string_view text);
  void write_count(std::uint64_t count);
  /// Sends `buffer` as the next segment.
  void add_segment(const Buffer& buffer) { segments_.push_back(buffer); }

  caf::error begin_object(std::uint16_t& number, std::string& name) override;
  caf::error end_object() override { return {}; }
  caf::error begin_sequence(std::size_t& size) override;
  caf::error end_sequence() override { return {}; }
  caf::error apply_raw(std::size_t bytes, void* data) override;

protected:
  caf::error apply_impl(std::int8_t& x) override { return put(x); }
  caf::error apply_impl(std::uint8_t& x) override { return put(x); }
  caf::error apply_impl(std::int16_t& x) override { return put(x); }
  caf::error apply_impl(std::uint16_t& x) override { return put(x); }
  caf::error apply_impl(std::int32_t& x) override { return put(x); }
  caf::error apply_impl(std::uint32_t& x) override { return put(x); }
  caf::error apply_impl(std::int64_t& x) override { return put(x); }
  caf::error apply_impl(std::uint64_t& x) override { return put(x); }
  caf::error apply_impl(float& x) override { return put(x); }
  caf::error apply_impl(double& x) override { return put(x); }
  caf::error apply_impl(long double& x) override;
  caf::error apply_impl(std::string& x) override;
  caf::error apply_impl(std::u16string& x) override;
  caf::error apply_impl(std::u32string& x) override;

private:
  template <class T>
  caf::error put(const T& x) {
    out_.append(&x, sizeof(T));
    return {};
  }
  Scratch& out_;
  std::vector<Buffer>& segments_;
};

/// Reads what WireWriter wrote, from bytes that nobody vouches for.
///
/// CAF's own deserializer resizes a byte sequence to whatever count stands before it, builds as
/// many elements of no size as it is told, and calls itself once for each message in a message. So
/// this one knows how many bytes there are: no count may exceed what they can hold, the counts of
/// one message are bounded together, and so is the nesting.
///
/// Ownership: borrows bytes and segments.
/// Threads:   one.
/// Failure:   caf::sec::end_of_stream for anything that does not hold together.
class WireReader final : public caf::deserializer {
public:
  WireReader(caf::execution_unit* context, std::span<const std::byte> bytes,
             std::span<Buffer> segments);

  /// The text lies in the message's bytes.
  caf::error read_string(std::string_view& text);
  caf::error read_count(std::uint64_t& count);
  /// The next segment, which must be this large.
  caf::error take_segment(std::uint64_t size, Buffer& buffer);
  std::size_t remaining() const noexcept { return bytes_.size(); }
  /// Nothing is left over: neither bytes nor segments.
  bool done() const noexcept { return bytes_.empty() && next_segment_ == segments_.size(); }

  caf::error begin_object(std::uint16_t& number, std::string& name) override;
  caf::error end_object() override { return {}; }
  caf::error begin_sequence(std::size_t& size) override;
  caf::error end_sequence() override { return {}; }
  caf::error apply_raw(std::size_t bytes, void* data) override;

protected:
  caf::error apply_impl(std::int8_t& x) override { return get(x); }
  caf::error apply_impl(std::uint8_t& x) override { return get(x); }
  caf::error apply_impl(std::int16_t& x) override { return get(x); }
  caf::error apply_impl(std::uint16_t& x) override { return get(x); }
  caf::error apply_impl(std::int32_t& x) override { return get(x); }
  caf::error apply_impl(std::uint32_t& x) override { return get(x); }
  caf::error apply_impl(std::int64_t& x) override { return get(x); }
  caf::error apply_impl(std::uint64_t& x) override { return get(x); }
  caf::error apply_impl(float& x) override { return get(x); }
  caf::error apply_impl(double& x) override { return get(x); }
  caf::error apply_impl(long double& x) override;
  caf::error apply_impl(std::string& x) override;
  caf::error apply_impl(std::u16string& x) override;
  caf::error apply_impl(std::u32string& x) override;

private:
  /// A vector<bool> of n takes n/8 bytes, and is counted once as bits and once as bytes.
  static constexpr std::size_t kBitsPerByte = 8;
  static constexpr std::size_t kCountsPerByte = 16;
  /// What one message may nest, measured as stack: CAF does not close every sequence it opens, so
  /// they cannot be counted.
  static constexpr std::uintptr_t kMaxStackBytes = std::uintptr_t{256} << 10;

  bool too_deep() const noexcept;
  template <class T>
  caf::error get(T& x) {
    return apply_raw(sizeof(T), &x);
  }
  template <class Text>
  caf::error get_text(Text& x);

  std::span<const std::byte> bytes_;
  std::span<Buffer> segments_;
  std::size_t next_segment_ = 0;
  std::uint64_t counts_left_;
  std::uintptr_t stack_;
};

}  // namespace troupe::remoting
