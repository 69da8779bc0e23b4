#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "kernels/compute_device.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

/// Where an allocator's memory comes from: a device's driver.
class MemorySource {
public:
  virtual ~MemorySource() = default;
  /// Null if there is not so much.
  virtual void* take(std::size_t bytes) noexcept = 0;
  virtual void give_back(void* block, std::size_t bytes) noexcept = 0;
  /// Sets `free` and `total`, if it can tell.
  virtual void look(MemoryStatistics& statistics) const noexcept = 0;
};

/// Keeps the memory of buffers that were let go for those that are asked for next, since a driver
/// takes long to give any, and waits for all work before it takes some back.
///
/// A block goes to a buffer of its size class: sizes are rounded up to 512 bytes, from 1 MiB on to
/// 2 MiB, and a kept block serves what fills at least three quarters of it. Where the source has
/// nothing left, what is kept is given back first.
///
/// Ownership: buffers keep it alive.
/// Threads:   any.
class CachingAllocator : public std::enable_shared_from_this<CachingAllocator> {
public:
  /// `owner` is the device's name, for messages. Without `keeps` it only counts.
  static std::shared_ptr<CachingAllocator> make(std::string owner, MemoryKind kind,
                                                std::unique_ptr<MemorySource> source, bool keeps);
  ~CachingAllocator();

  /// Errors: `resource_exhausted` with what was asked, used, kept and free.
  Result<Buffer> allocate(std::size_t bytes);
  MemoryStatistics statistics() const;
  void trim();

private:
  CachingAllocator(std::string owner, MemoryKind kind, std::unique_ptr<MemorySource> source,
                   bool keeps);
  void* take(std::size_t size) TROUPE_REQUIRES(mutex_);
  void release_kept() TROUPE_REQUIRES(mutex_);
  void put_back(void* block, std::size_t size);

  const std::string owner_;
  const MemoryKind kind_;
  const std::unique_ptr<MemorySource> source_;
  const bool keeps_;
  mutable Mutex mutex_;
  std::multimap<std::size_t, void*> kept_ TROUPE_GUARDED_BY(mutex_);
  MemoryStatistics statistics_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::kernels
