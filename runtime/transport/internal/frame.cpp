#include "runtime/transport/internal/frame.hpp"

#include <cstring>

#include <fmt/format.h>

#include "runtime/transport/transport.hpp"

namespace troupe::transport {
namespace {

std::byte* put(std::byte* to, const void* from, std::size_t size) {
  if (size != 0) std::memcpy(to, from, size);
  return to + size;
}

Error malformed(std::string_view what, std::size_t value) {
  return Error{Code::protocol_error, fmt::format("malformed frame: {} {}", what, value)};
}

}  // namespace

std::size_t write_record(std::byte* to, const RecordHeader& header,
                         std::span<const SegmentRef> segments, std::span<const std::byte> head,
                         std::span<const std::byte> body) {
  std::byte* at = put(to, &header, sizeof header);
  at = put(at, segments.data(), segments.size_bytes());
  at = put(at, head.data(), head.size());
  at = put(at, body.data(), body.size());
  const std::size_t size = record_size(head.size() + body.size(), segments.size());
  static constexpr std::byte kZeros[8]{};
  put(at, kZeros, static_cast<std::size_t>(to + size - at));
  return size;
}

SegmentRef RecordView::segment(std::size_t index) const {
  SegmentRef ref;
  std::memcpy(&ref, segment_table.data() + index * sizeof ref, sizeof ref);
  return ref;
}

Result<RecordView> FrameReader::next() {
  RecordView record;
  if (rest_.size() < sizeof record.header)
    return malformed("bytes too few for a record:", rest_.size());
  std::memcpy(&record.header, rest_.data(), sizeof record.header);
  const RecordHeader& header = record.header;
  if (header.kind > RecordKind::may_lend)
    return malformed("record kind", static_cast<std::size_t>(header.kind));
  if (header.channel >= static_cast<std::uint8_t>(Channel::count))
    return malformed("channel", header.channel);
  if (header.segments > kMaxRecordSegments) return malformed("segment count", header.segments);
  if (header.kind == RecordKind::spilled && (header.segments == 0 || header.bytes != 0))
    return malformed("spilled record with bytes", header.bytes);
  if (header.kind >= RecordKind::released && (header.segments != 0 || header.bytes != 0))
    return malformed("control record with bytes", header.bytes);

  const std::size_t size = record_size(header.bytes, header.segments);
  if (size > rest_.size())
    return malformed("record that reaches past its end by", size - rest_.size());
  const std::size_t table = header.segments * sizeof(SegmentRef);
  record.segment_table = rest_.subspan(sizeof header, table);
  record.bytes = rest_.subspan(sizeof header + table, header.bytes);
  rest_ = rest_.subspan(size);
  return record;
}

}  // namespace troupe::transport
