#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"
#include "runtime/memory/buffer_pool.hpp"
#include "runtime/transport/internal/frame.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::transport {

/// Takes one peer's frames and segments as they come, in any order, and hands out its messages in
/// the order of its sends. No I/O: someone else moves the bytes of the segments.
///
/// Ownership: the sink is borrowed. Frames are copied only if they have to wait.
/// Threads:   the progress thread only.
/// Failure:   `protocol_error` if the peer broke the rules, `resource_exhausted` if there is no
///            memory; the peer must be closed then, and nothing more is handed out.
/// Invariant: at most `max_incoming_bytes` of segments, and one more segment, are on their way in.
class Inbox {
public:
  struct Limits {
    std::size_t max_segment_bytes = std::size_t{8} << 30;
    std::size_t max_incoming_bytes = std::size_t{1} << 30;
    std::size_t max_waiting_frames = 1 << 16;
  };

  /// Where things go. Called from within on_frame(), on_segment_bytes() and resume().
  class Sink {
  public:
    virtual ~Sink() = default;
    virtual void message(Channel channel, std::span<const std::byte> bytes,
                         std::span<Buffer> segments) = 0;
    /// The peer has read this lent segment.
    virtual void released(std::uint64_t segment) = 0;
    virtual void bye() = 0;
    virtual void may_lend() = 0;
    /// Read this from the peer's memory, once `destination()` gives room.
    virtual void lent(std::uint64_t segment, std::uint64_t address, std::size_t size) = 0;
  };

  Inbox(Limits limits, BufferPool& pool, Sink& sink);

  Status on_frame(std::uint64_t sequence, std::span<const std::byte> frame);

  /// Where bytes of a segment go. Null without an error: not now, ask again when others are done
  /// (never with `now`).
  Result<std::byte*> destination(std::uint64_t segment, std::uint64_t offset, std::uint64_t length,
                                 std::uint64_t total, bool now = false);
  /// So many bytes of the segment have come.
  Status on_segment_bytes(std::uint64_t segment, std::size_t bytes);

  /// From now on the peer may lend segments.
  void borrow_memory() { borrows_memory_ = true; }

  /// Hands out nothing while held (the other side may be faster than our own handshake).
  void hold() { held_ = true; }
  Status resume();

private:
  struct Segment {
    Buffer buffer;
    std::uint64_t size = 0;
    std::uint64_t missing = 0;
    bool announced = false;
    bool started = false;
  };
  struct Waiting {
    std::vector<std::uint64_t> words;  ///< a frame's copy, 8-byte aligned
    std::size_t size = 0;
    std::size_t done = 0;  ///< bytes of records that were handed out
  };

  Status scan(std::span<const std::byte> frame, bool& simple);
  Status announce(const RecordView& record);
  Status hand_out_waiting();
  /// False if the record must wait for its segments.
  Result<bool> hand_out(const RecordView& record);
  std::uint64_t first_missing() const;
  void keep(std::uint64_t sequence, std::span<const std::byte> frame);

  const Limits limits_;
  BufferPool& pool_;
  Sink& sink_;
  bool held_ = false;
  bool borrows_memory_ = false;
  bool handing_out_ = false;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t next_segment_ = 0;  ///< first one of the next record that has any
  std::uint64_t incoming_bytes_ = 0;
  std::map<std::uint64_t, Waiting> waiting_;
  std::map<std::uint64_t, Segment> segments_;
  std::vector<Buffer> gathered_;
};

}  // namespace troupe::transport
