#include "runtime/transport/internal/outbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr std::size_t kMaxFreeChunks = 64;

std::size_t total_size(const std::vector<Buffer>& segments) {
  std::size_t total = 0;
  for (const Buffer& segment : segments) total += segment.size();
  return total;
}

}  // namespace

Outbox::Outbox(Options options, BufferPool& pool) : options_(options), pool_(pool) {}
Outbox::~Outbox() = default;

Status Outbox::check(std::size_t bytes, const std::vector<Buffer>& segments) const {
  if (bytes > options_.max_message_bytes)
    return Error{Code::invalid_argument,
                 fmt::format("a message of {} bytes is over the limit of {}: send its bulk as "
                             "segments",
                             bytes, options_.max_message_bytes)};
  if (segments.size() > kMaxRecordSegments - 1)
    return Error{Code::invalid_argument,
                 fmt::format("a message of {} segments is over the limit of "
                             "{}: join them or send several messages",
                             segments.size(), kMaxRecordSegments - 1)};
  for (const Buffer& segment : segments) {
    if (segment.size() > options_.max_segment_bytes)
      return Error{Code::invalid_argument,
                   fmt::format("a segment of {} bytes is over the limit of {}: cut it in pieces",
                               segment.size(), options_.max_segment_bytes)};
    if (on_device(segment.kind()))
      return Error{Code::not_supported,
                   "a segment in a device's memory cannot be sent: copy it to host "
                   "memory first"};
  }
  return {};
}

Status Outbox::wait_for_room(std::size_t bytes, bool may_block) {
  // The progress thread cannot wait for itself; its messages are few, so it may go over.
  const std::size_t limit = may_block ? options_.max_queued_bytes : options_.max_queued_bytes * 2;
  const auto full = [&]() TROUPE_REQUIRES(mutex_) {
    return queued_bytes_ != 0 && queued_bytes_ + bytes > limit;
  };
  if (closed_.ok() && full() && may_block) {
    const auto until = std::chrono::steady_clock::now() + options_.send_timeout;
    ++waiters_;
    while (closed_.ok() && full())
      if (room_.wait_until(mutex_, until) == std::cv_status::timeout) break;
    --waiters_;
  }
  if (!closed_.ok()) return closed_;
  if (!full()) return {};
  return Error{Code::resource_exhausted,
               fmt::format("{} bytes wait for this peer already (limit {}): it takes messages too "
                           "slowly or has stopped",
                           queued_bytes_, options_.max_queued_bytes)};
}

std::byte* Outbox::reserve(std::size_t bytes) {
  if (!current_ || current_->capacity - current_->size < bytes) {
    if (current_) full_.push_back(std::move(current_));
    if (!free_.empty()) {
      current_ = std::move(free_.back());
      free_.pop_back();
    } else {
      current_ = std::make_unique<Chunk>();
      current_->capacity = options_.chunk_bytes;
      current_->data = std::make_unique_for_overwrite<std::byte[]>(options_.chunk_bytes);
    }
  }
  std::byte* at = current_->data.get() + current_->size;
  current_->size += bytes;
  queued_bytes_ += bytes;
  return at;
}

Result<bool> Outbox::append(Channel channel, std::span<const std::byte> head,
                            std::span<const std::byte> body, std::vector<Buffer> segments,
                            bool may_block) {
  const std::size_t bytes = head.size() + body.size();
  TROUPE_TRY(check(bytes, segments));
  RecordHeader record;
  record.channel = static_cast<std::uint8_t>(channel);
  // What does not fit a frame goes as a segment before the others.
  if (record_size(bytes, segments.size()) > options_.chunk_bytes) {
    TROUPE_ASSIGN(Buffer spilled, pool_.acquire(std::max<std::size_t>(bytes, 1)));
    if (!head.empty()) std::memcpy(spilled.data(), head.data(), head.size());
    if (!body.empty()) std::memcpy(spilled.data() + head.size(), body.data(), body.size());
    segments.insert(segments.begin(), spilled.slice(0, bytes));
    record.kind = RecordKind::spilled;
    head = body = {};
  }
  record.bytes = static_cast<std::uint32_t>(head.size() + body.size());
  record.segments = static_cast<std::uint16_t>(segments.size());
  const std::size_t size = record_size(record.bytes, segments.size());
  const std::size_t bulk = total_size(segments);

  const bool lent = lends_memory_.load(std::memory_order_relaxed);
  SegmentRef few[8];
  std::vector<SegmentRef> many(segments.size() > std::size(few) ? segments.size() : 0);
  const std::span<SegmentRef> refs(many.empty() ? few : many.data(), segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i)
    refs[i] = {segments[i].size(), lent ? reinterpret_cast<std::uint64_t>(segments[i].data()) : 0};

  MutexLock lock(mutex_);
  TROUPE_TRY(wait_for_room(size + bulk, may_block));
  record.first_segment = next_segment_;
  write_record(reserve(size), record, refs, head, body);
  ++current_->messages;
  queued_bytes_ += bulk;
  for (Buffer& segment : segments) segments_.push_back({next_segment_++, lent, std::move(segment)});
  messages_.fetch_add(1, std::memory_order_relaxed);
  return !std::exchange(scheduled_, true);
}

void Outbox::append_control(RecordKind kind, std::uint64_t first_segment) {
  RecordHeader record;
  record.kind = kind;
  record.first_segment = first_segment;
  MutexLock lock(mutex_);
  write_record(reserve(record_size(0, 0)), record, {}, {}, {});
}

void Outbox::take(std::vector<ChunkPtr>& frames, std::vector<OutSegment>& segments) {
  MutexLock lock(mutex_);
  for (ChunkPtr& chunk : full_) frames.push_back(std::move(chunk));
  full_.clear();
  if (current_) frames.push_back(std::move(current_));
  for (OutSegment& segment : segments_) segments.push_back(std::move(segment));
  segments_.clear();
  scheduled_ = false;
}

void Outbox::recycle(ChunkPtr chunk) {
  MutexLock lock(mutex_);
  queued_bytes_ -= std::min(queued_bytes_, chunk->size);  // close() has forgotten them
  chunk->size = 0;
  chunk->messages = 0;
  if (free_.size() < kMaxFreeChunks && closed_.ok()) free_.push_back(std::move(chunk));
  if (waiters_ != 0) room_.notify_all();
}

void Outbox::finished(std::size_t segment_bytes) {
  MutexLock lock(mutex_);
  queued_bytes_ -= std::min(queued_bytes_, segment_bytes);
  if (waiters_ != 0) room_.notify_all();
}

void Outbox::close(Error reason) {
  std::vector<OutSegment> dropped;
  MutexLock lock(mutex_);
  closed_ = std::move(reason);
  full_.clear();
  current_.reset();
  free_.clear();
  dropped.swap(segments_);
  queued_bytes_ = 0;
  room_.notify_all();
  lock.unlock();
}

void Outbox::seal(Error reason) {
  MutexLock lock(mutex_);
  if (closed_.ok()) closed_ = std::move(reason);
  room_.notify_all();
}

std::size_t Outbox::queued_bytes() const {
  MutexLock lock(mutex_);
  return queued_bytes_;
}

}  // namespace troupe::transport
