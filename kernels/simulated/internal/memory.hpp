#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "kernels/internal/caching_allocator.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::simulated {

/// A device's address space: bytes that are there twice, at addresses that nobody may touch, which
/// are what the host gets, and where the device's own work finds them.
///
/// Threads: any.
class Memory {
public:
  /// Errors: `resource_exhausted`.
  static Result<std::unique_ptr<Memory>> make(std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Where the device finds what the host calls `address`; the host's own memory stays as it is.
  template <class T>
  T* at(T* address) const noexcept {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(outside_);
    return offset < bytes_ ? reinterpret_cast<T*>(inside_ + offset) : address;
  }
  bool holds(const void* address) const noexcept { return at(address) != address; }

  /// A run of addresses, or null if there is none so long. First fit.
  std::byte* take(std::size_t bytes) noexcept;
  void give_back(std::byte* block, std::size_t bytes) noexcept;
  void look(MemoryStatistics& statistics) const noexcept;

private:
  Memory(std::byte* outside, std::byte* inside, std::size_t bytes);

  std::byte* const outside_;
  std::byte* const inside_;
  const std::size_t bytes_;
  mutable Mutex mutex_;
  std::map<std::size_t, std::size_t> free_ TROUPE_GUARDED_BY(mutex_);  ///< begin -> end
};

}  // namespace troupe::kernels::simulated
