#include "runtime/transport/internal/inbox.hpp"

#include <cstring>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

/// How far ahead of the messages handed out a peer may number its segments.
constexpr std::uint64_t kMaxOpenSegments = 1 << 20;

template <class... Args>
Error broken(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Code::protocol_error, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace

Inbox::Inbox(Limits limits, BufferPool& pool, Sink& sink)
    : limits_(limits), pool_(pool), sink_(sink) {}

Status Inbox::announce(const RecordView& record) {
  for (std::size_t i = 0; i < record.header.segments; ++i) {
    const SegmentRef ref = record.segment(i);
    const std::uint64_t number = record.header.first_segment + i;
    if (number < next_segment_ || number - next_segment_ > kMaxOpenSegments)
      return broken("segment number {} is out of range", number);
    if (ref.size > limits_.max_segment_bytes)
      return broken("a segment of {} bytes is over the limit of {}", ref.size,
                    limits_.max_segment_bytes);
    if (ref.lent_at != 0 && !borrows_memory_)
      return broken("segment {} is lent, but that was not agreed", number);
    auto [at, fresh] = segments_.try_emplace(number);
    Segment& segment = at->second;
    if (fresh) {
      segment.size = segment.missing = ref.size;
    } else if (segment.announced || segment.size != ref.size) {
      return broken("segment {} was announced twice or with another size", number);
    }
    segment.announced = true;
    if (ref.lent_at != 0 && ref.size != 0) sink_.lent(number, ref.lent_at, ref.size);
  }
  return {};
}

/// Checks the whole frame before any of it is handed out, and learns of its segments.
Status Inbox::scan(std::span<const std::byte> frame, bool& simple) {
  FrameReader reader(frame);
  while (!reader.at_end()) {
    TROUPE_ASSIGN(const RecordView record, reader.next());
    if (record.header.segments == 0) continue;
    simple = false;
    TROUPE_TRY(announce(record));
  }
  return {};
}

void Inbox::keep(std::uint64_t sequence, std::span<const std::byte> frame) {
  Waiting& waiting = waiting_[sequence];
  waiting.size = frame.size();
  waiting.words.resize((frame.size() + 7) / 8);
  if (!frame.empty()) std::memcpy(waiting.words.data(), frame.data(), frame.size());
}

Status Inbox::on_frame(std::uint64_t sequence, std::span<const std::byte> frame) {
  if (sequence < next_sequence_ || waiting_.contains(sequence))
    return broken("frame {} came twice", sequence);
  if (sequence - next_sequence_ > limits_.max_waiting_frames)
    return broken("frame {} came while {} is due", sequence, next_sequence_);
  bool simple = true;
  TROUPE_TRY(scan(frame, simple));
  const bool aligned = reinterpret_cast<std::uintptr_t>(frame.data()) % 8 == 0;
  if (!simple || !aligned || held_ || sequence != next_sequence_ || !waiting_.empty()) {
    keep(sequence, frame);
    return hand_out_waiting();
  }
  ++next_sequence_;
  FrameReader reader(frame);
  while (!reader.at_end()) {
    TROUPE_ASSIGN(const RecordView record, reader.next());
    TROUPE_TRY(hand_out(record).status());
  }
  return {};
}

Result<bool> Inbox::hand_out(const RecordView& record) {
  const RecordHeader& header = record.header;
  if (header.kind == RecordKind::released) {
    sink_.released(header.first_segment);
    return true;
  }
  if (header.kind == RecordKind::bye) {
    sink_.bye();
    return true;
  }
  if (header.kind == RecordKind::may_lend) {
    sink_.may_lend();
    return true;
  }
  if (header.segments == 0) {
    sink_.message(static_cast<Channel>(header.channel), record.bytes, {});
    return true;
  }
  if (header.first_segment != next_segment_)
    return broken("segment {} is due, but {} came", next_segment_, header.first_segment);
  const std::uint64_t end = header.first_segment + header.segments;
  for (std::uint64_t number = header.first_segment; number != end; ++number)
    if (segments_.at(number).missing != 0) return false;
  gathered_.clear();
  for (std::uint64_t number = header.first_segment; number != end; ++number)
    gathered_.push_back(std::move(segments_.extract(number).mapped().buffer));
  next_segment_ = end;
  std::span<const std::byte> bytes = record.bytes;
  std::span<Buffer> segments = gathered_;
  if (header.kind == RecordKind::spilled) {
    bytes = std::as_const(gathered_[0]).bytes();
    segments = segments.subspan(1);
  }
  sink_.message(static_cast<Channel>(header.channel), bytes, segments);
  gathered_.clear();
  return true;
}

Status Inbox::hand_out_waiting() {
  // A handler that is called from here may cause no further call into this object.
  if (held_ || handing_out_) return {};
  handing_out_ = true;
  Status status;
  for (auto at = waiting_.begin(); at != waiting_.end() && at->first == next_sequence_;
       at = waiting_.begin()) {
    Waiting& frame = at->second;
    const auto* data = reinterpret_cast<const std::byte*>(frame.words.data());
    bool stuck = false;
    while (status.ok() && !stuck && frame.done != frame.size) {
      FrameReader reader({data + frame.done, frame.size - frame.done});
      const auto record = reader.next();
      const Result<bool> out = record.ok() ? hand_out(*record) : Result<bool>(record.error());
      if (!out.ok()) status = out.error();
      stuck = out.ok() && !*out;
      if (out.ok() && *out) frame.done = frame.size - reader.rest().size();
    }
    if (stuck || !status.ok()) break;
    ++next_sequence_;
    waiting_.erase(at);
  }
  handing_out_ = false;
  return status;
}

std::uint64_t Inbox::first_missing() const {
  for (const auto& [number, segment] : segments_)
    if (segment.missing != 0) return number;
  return ~std::uint64_t{0};
}

Result<std::byte*> Inbox::destination(std::uint64_t number, std::uint64_t offset,
                                      std::uint64_t length, std::uint64_t total, bool now) {
  if (number < next_segment_ || number - next_segment_ > kMaxOpenSegments)
    return broken("a part of segment {} came, but {} is due", number, next_segment_);
  if (total > limits_.max_segment_bytes)
    return broken("a segment of {} bytes is over the limit of {}", total,
                  limits_.max_segment_bytes);
  if (length == 0 || offset > total || length > total - offset)
    return broken("bytes {}+{} of a segment of {} bytes", offset, length, total);
  auto [at, fresh] = segments_.try_emplace(number);
  Segment& segment = at->second;
  if (fresh) {
    segment.size = segment.missing = total;
  } else if (segment.size != total) {
    return broken("segment {} has {} bytes, but a part says {}", number, segment.size, total);
  }
  if (!segment.started) {
    const bool fits = incoming_bytes_ == 0 || incoming_bytes_ + total <= limits_.max_incoming_bytes;
    // The segment that everything else waits for always gets room: no two can block each other.
    if (!now && !fits && number != first_missing()) return static_cast<std::byte*>(nullptr);
    TROUPE_ASSIGN(segment.buffer, pool_.acquire(total));
    segment.started = true;
    incoming_bytes_ += total;
  }
  return segment.buffer.data() + offset;
}

Status Inbox::on_segment_bytes(std::uint64_t number, std::size_t bytes) {
  const auto at = segments_.find(number);
  if (at == segments_.end() || bytes > at->second.missing)
    return broken("more bytes of segment {} came than it has", number);
  at->second.missing -= bytes;
  if (at->second.missing != 0) return {};
  incoming_bytes_ -= at->second.size;
  return hand_out_waiting();
}

Status Inbox::resume() {
  held_ = false;
  return hand_out_waiting();
}

}  // namespace troupe::transport
