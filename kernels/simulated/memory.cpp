#include "kernels/simulated/internal/memory.hpp"

#include <cstring>
#include <iterator>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace troupe::kernels::simulated {

Result<std::unique_ptr<Memory>> Memory::make(std::size_t bytes) {
  const auto refused = [&] {
    return Error{Code::resource_exhausted,
                 fmt::format("a simulated device with {} bytes: {}", bytes, std::strerror(errno))};
  };
  const int file = memfd_create("troupe-simulated-device", MFD_CLOEXEC);
  if (file < 0) return refused();
  void* outside = MAP_FAILED;
  void* inside = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    outside = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    inside = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  }
  Error error = refused();
  close(file);
  if (outside == MAP_FAILED || inside == MAP_FAILED) {
    if (outside != MAP_FAILED) munmap(outside, bytes);
    return error;
  }
  return std::unique_ptr<Memory>(
      new Memory(static_cast<std::byte*>(outside), static_cast<std::byte*>(inside), bytes));
}

Memory::Memory(std::byte* outside, std::byte* inside, std::size_t bytes)
    : outside_(outside), inside_(inside), bytes_(bytes), free_{{0, bytes}} {}

Memory::~Memory() {
  munmap(outside_, bytes_);
  munmap(inside_, bytes_);
}

std::byte* Memory::take(std::size_t bytes) noexcept {
  MutexLock lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, end] = *it;
    if (end - begin < bytes) continue;
    free_.erase(it);
    if (begin + bytes < end) free_.emplace(begin + bytes, end);
    // What nobody wrote is no number.
    std::memset(inside_ + begin, 0xff, bytes);
    return outside_ + begin;
  }
  return nullptr;
}

void Memory::give_back(std::byte* block, std::size_t bytes) noexcept {
  auto begin = static_cast<std::size_t>(block - outside_);
  auto end = begin + bytes;
  MutexLock lock(mutex_);
  const auto next = free_.lower_bound(begin);
  if (next != free_.begin()) {
    if (const auto before = std::prev(next); before->second == begin) {
      begin = before->first;
      free_.erase(before);
    }
  }
  if (next != free_.end() && next->first == end) {
    end = next->second;
    free_.erase(next);
  }
  free_.emplace(begin, end);
}

void Memory::look(MemoryStatistics& statistics) const noexcept {
  MutexLock lock(mutex_);
  statistics.total = bytes_;
  statistics.free = 0;
  for (const auto& [begin, end] : free_) statistics.free += end - begin;
}

}  // namespace troupe::kernels::simulated
