#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.hpp"

// What travels in one UCX active message: a frame of records, or a part of a segment. Both ends are
// of one byte order (the handshake's protocol version says so), so structs are copied as they are.
namespace troupe::transport {

enum AmId : unsigned { kFrameAm = 1, kPartAm = 2 };

/// The header of a frame's active message.
struct FrameHeader {
  std::uint64_t session = 0;   ///< what the receiver chose in the handshake
  std::uint64_t sequence = 0;  ///< counts the frames to this peer from 0
};

/// The header of the active message that carries a part of a segment.
struct PartHeader {
  std::uint64_t session = 0;
  std::uint64_t segment = 0;  ///< counts the segments to this peer from 0
  std::uint64_t offset = 0;
  std::uint64_t total = 0;  ///< bytes of the whole segment
};

enum class RecordKind : std::uint8_t {
  message = 0,
  spilled = 1,   ///< a message whose bytes are its first segment
  released = 2,  ///< `first_segment` was lent and has been read
  bye = 3,       ///< nothing follows; the receiver closes
  may_lend = 4,  ///< the sender can read the receiver's memory: lend segments from now on
};

/// Starts a record; then come `segments` SegmentRefs, then `bytes` bytes, then zeros to a multiple
/// of 8.
struct RecordHeader {
  std::uint32_t bytes = 0;
  RecordKind kind = RecordKind::message;
  std::uint8_t channel = 0;
  std::uint16_t segments = 0;
  std::uint64_t first_segment = 0;
};

/// One segment of a record. Lent: the receiver reads it from the sender's memory.
struct SegmentRef {
  std::uint64_t size = 0;
  std::uint64_t lent_at = 0;  ///< 0: comes as parts
};

static_assert(sizeof(FrameHeader) == 16 && sizeof(PartHeader) == 32);
static_assert(sizeof(RecordHeader) == 16 && sizeof(SegmentRef) == 16);

inline constexpr std::size_t kMaxRecordSegments = 1024;

/// What a record takes in a frame.
constexpr std::size_t record_size(std::size_t bytes, std::size_t segments) {
  return sizeof(RecordHeader) + segments * sizeof(SegmentRef) + (bytes + 7) / 8 * 8;
}

/// Writes a record at `to`, which has room for it. Returns its size.
std::size_t write_record(std::byte* to, const RecordHeader& header,
                         std::span<const SegmentRef> segments, std::span<const std::byte> head,
                         std::span<const std::byte> body);

/// A record inside a frame; borrows the frame's bytes.
struct RecordView {
  RecordHeader header;
  std::span<const std::byte> segment_table;  ///< header.segments SegmentRefs
  std::span<const std::byte> bytes;

  SegmentRef segment(std::size_t index) const;
};

/// Walks the records of an untrusted frame.
class FrameReader {
public:
  explicit FrameReader(std::span<const std::byte> frame) : rest_(frame) {}

  bool at_end() const noexcept { return rest_.empty(); }
  /// What is not read yet.
  std::span<const std::byte> rest() const noexcept { return rest_; }
  /// Errors: `protocol_error` for a record that does not hold together or reaches past the frame.
  Result<RecordView> next();

private:
  std::span<const std::byte> rest_;
};

}  // namespace troupe::transport
