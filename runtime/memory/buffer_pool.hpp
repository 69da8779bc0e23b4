#pragma once

#include <cstddef>
#include <memory>

#include "runtime/memory/buffer.hpp"

namespace troupe {

/// Hands out host buffers and takes them back warm: a fresh 64 MiB buffer costs a page fault per
/// 4 KiB, which is several times the cost of filling it.
///
/// Ownership: buffers may outlive the pool; they then go back to the heap.
/// Threads:   any, for everything.
/// Failure:   `resource_exhausted` as Buffer::allocate, or above `max_bytes` in use.
class BufferPool {
public:
  struct Options {
    std::size_t max_cached_bytes = std::size_t{512} << 20;  ///< kept for reuse; more is freed
    std::size_t max_bytes_in_use = SIZE_MAX;                ///< a bound on what is handed out
  };
  struct Stats {
    std::size_t bytes_in_use = 0;
    std::size_t bytes_cached = 0;
    std::size_t hits = 0;    ///< handed out from the cache
    std::size_t misses = 0;  ///< newly allocated
  };

  BufferPool();
  explicit BufferPool(Options options);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// Uninitialised, exactly `bytes` long (the memory behind it may be larger).
  Result<Buffer> acquire(std::size_t bytes);

  Stats stats() const;

  /// Frees all cached memory.
  void trim();

private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace troupe
