#include "runtime/memory/buffer_pool.hpp"

#include <bit>
#include <map>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/mutex.hpp"

namespace troupe {
namespace {

constexpr std::align_val_t kPage{4096};

/// Sizes are rounded up to an eighth of their power of two, so at most 12.5% is wasted.
std::size_t size_class(std::size_t bytes) {
  if (bytes <= 4096) return 4096;
  const std::size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

void free_pages(std::byte* data) {
  ::operator delete(data, kPage);
}

}  // namespace

struct BufferPool::State {
  explicit State(Options o) : options(o) {}
  ~State() {
    for (auto& [size, list] : cached)
      for (auto* data : list) free_pages(data);
  }

  void put_back(std::byte* data, std::size_t size) {
    {
      MutexLock lock(mutex);
      stats.bytes_in_use -= size;
      if (!closed && stats.bytes_cached + size <= options.max_cached_bytes) {
        cached[size].push_back(data);
        stats.bytes_cached += size;
        return;
      }
    }
    free_pages(data);
  }

  const Options options;
  Mutex mutex;
  std::map<std::size_t, std::vector<std::byte*>> cached TROUPE_GUARDED_BY(mutex);
  Stats stats TROUPE_GUARDED_BY(mutex);
  bool closed TROUPE_GUARDED_BY(mutex) = false;
};

BufferPool::BufferPool() : BufferPool(Options{}) {}
BufferPool::BufferPool(Options options) : state_(std::make_shared<State>(options)) {}

BufferPool::~BufferPool() {
  trim();
  MutexLock lock(state_->mutex);
  state_->closed = true;
}

Result<Buffer> BufferPool::acquire(std::size_t bytes) {
  if (bytes == 0) return Buffer{};
  if (bytes > SIZE_MAX / 2)
    return Error{Code::resource_exhausted,
                 fmt::format("no memory for a buffer of {} bytes", bytes)};
  const std::size_t size = size_class(bytes);
  std::byte* data = nullptr;
  {
    MutexLock lock(state_->mutex);
    auto& stats = state_->stats;
    if (size > state_->options.max_bytes_in_use ||
        stats.bytes_in_use > state_->options.max_bytes_in_use - size)
      return Error{
          Code::resource_exhausted,
          fmt::format("a buffer of {} bytes does not fit: {} of at most {} bytes are in use", bytes,
                      stats.bytes_in_use, state_->options.max_bytes_in_use)};
    stats.bytes_in_use += size;
    auto found = state_->cached.find(size);
    if (found != state_->cached.end() && !found->second.empty()) {
      data = found->second.back();
      found->second.pop_back();
      stats.bytes_cached -= size;
      ++stats.hits;
    } else {
      ++stats.misses;
    }
  }
  if (data == nullptr) data = static_cast<std::byte*>(::operator new(size, kPage, std::nothrow));
  if (data == nullptr) {
    MutexLock lock(state_->mutex);
    state_->stats.bytes_in_use -= size;
    return Error{Code::resource_exhausted,
                 fmt::format("no host memory for a buffer of {} bytes", bytes)};
  }
  auto give_back = [state = state_, size](std::byte* p) { state->put_back(p, size); };
  return Buffer::wrap(std::shared_ptr<std::byte>(data, std::move(give_back)), data, bytes);
}

BufferPool::Stats BufferPool::stats() const {
  MutexLock lock(state_->mutex);
  return state_->stats;
}

void BufferPool::trim() {
  std::map<std::size_t, std::vector<std::byte*>> cached;
  {
    MutexLock lock(state_->mutex);
    cached.swap(state_->cached);
    state_->stats.bytes_cached = 0;
  }
  for (auto& [size, list] : cached)
    for (auto* data : list) free_pages(data);
}

}  // namespace troupe
