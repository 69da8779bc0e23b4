#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"
#include "runtime/memory/buffer_pool.hpp"
#include "runtime/transport/internal/frame.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::transport {

/// A frame being filled, then sent. Reused.
struct Chunk {
  std::unique_ptr<std::byte[]> data;
  std::size_t capacity = 0;
  std::size_t size = 0;
  std::uint32_t messages = 0;
  FrameHeader header;
};
using ChunkPtr = std::unique_ptr<Chunk>;

/// A segment on its way out.
struct OutSegment {
  std::uint64_t number = 0;
  bool lent = false;
  Buffer buffer;
};

/// The messages that wait for one peer, packed into frames as they come.
///
/// Ownership: copies the bytes of messages; holds segments by reference until `finished`.
/// Threads:   any, except take/recycle/finished: the progress thread.
/// Failure:   `unavailable` once closed, `resource_exhausted` if it stays full.
class Outbox {
public:
  struct Options {
    std::size_t chunk_bytes = 8 << 10;
    std::size_t max_queued_bytes = std::size_t{256} << 20;
    std::size_t max_message_bytes = std::size_t{64} << 20;
    std::size_t max_segment_bytes = std::size_t{8} << 30;
    Duration send_timeout = std::chrono::seconds(10);
  };
  Outbox(Options options, BufferPool& pool);
  ~Outbox();

  /// Queues a message; waits for room if `may_block`. True if nothing was queued before: the
  /// progress thread must be told.
  Result<bool> append(Channel channel, std::span<const std::byte> head,
                      std::span<const std::byte> body, std::vector<Buffer> segments,
                      bool may_block);

  /// Queues a record without a message. Progress thread, which must take() soon.
  void append_control(RecordKind kind, std::uint64_t first_segment);

  /// From now on the peer reads segments from this process's memory.
  void lend_memory() { lends_memory_ = true; }

  /// Moves what waits to the caller. Later appends need telling again.
  void take(std::vector<ChunkPtr>& frames, std::vector<OutSegment>& segments);

  /// Gives back a sent frame.
  void recycle(ChunkPtr chunk);
  /// These bytes of segments are no longer queued.
  void finished(std::size_t segment_bytes);

  /// Drops what waits; sends fail with `reason` from now on.
  void close(Error reason);
  /// Sends fail from now on, what waits still goes.
  void seal(Error reason);

  std::size_t queued_bytes() const;
  std::uint64_t messages() const noexcept { return messages_.load(std::memory_order_relaxed); }

private:
  Status check(std::size_t bytes, const std::vector<Buffer>& segments) const;
  Status wait_for_room(std::size_t bytes, bool may_block) TROUPE_REQUIRES(mutex_);
  std::byte* reserve(std::size_t bytes) TROUPE_REQUIRES(mutex_);

  const Options options_;
  BufferPool& pool_;
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<bool> lends_memory_{false};
  mutable Mutex mutex_;
  CondVar room_;
  std::vector<ChunkPtr> full_ TROUPE_GUARDED_BY(mutex_);
  ChunkPtr current_ TROUPE_GUARDED_BY(mutex_);
  std::vector<ChunkPtr> free_ TROUPE_GUARDED_BY(mutex_);
  std::vector<OutSegment> segments_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t next_segment_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::size_t queued_bytes_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::size_t waiters_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool scheduled_ TROUPE_GUARDED_BY(mutex_) = false;
  Status closed_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::transport
