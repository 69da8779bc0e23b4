#include "kernels/internal/caching_allocator.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::kernels {

namespace {

constexpr std::size_t kSmall = 512;
constexpr std::size_t kLarge = std::size_t{2} << 20;
constexpr std::size_t kLargeFrom = std::size_t{1} << 20;

std::size_t size_class(std::size_t bytes) {
  const std::size_t unit = bytes < kLargeFrom ? kSmall : kLarge;
  return (bytes + unit - 1) / unit * unit;
}

/// "1.5 GiB".
std::string text(std::size_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < std::size(kUnits)) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace

std::shared_ptr<CachingAllocator> CachingAllocator::make(std::string owner, MemoryKind kind,
                                                         std::unique_ptr<MemorySource> source,
                                                         bool keeps) {
  return std::shared_ptr<CachingAllocator>(
      new CachingAllocator(std::move(owner), kind, std::move(source), keeps));
}

CachingAllocator::CachingAllocator(std::string owner, MemoryKind kind,
                                   std::unique_ptr<MemorySource> source, bool keeps)
    : owner_(std::move(owner)), kind_(kind), source_(std::move(source)), keeps_(keeps) {}

CachingAllocator::~CachingAllocator() {
  MutexLock lock(mutex_);
  release_kept();
}

Result<Buffer> CachingAllocator::allocate(std::size_t bytes) {
  if (bytes == 0) return Buffer{};
  const std::size_t rounded = keeps_ ? size_class(bytes) : bytes;
  void* block = nullptr;
  std::size_t size = rounded;
  {
    MutexLock lock(mutex_);
    const auto found = kept_.lower_bound(rounded);
    if (found != kept_.end() && rounded >= found->first - found->first / 4) {
      size = found->first;
      block = found->second;
      kept_.erase(found);
      ++statistics_.reused;
    } else {
      block = take(rounded);
    }
    if (block == nullptr) {
      MemoryStatistics now = statistics_;
      source_->look(now);
      std::string message =
          fmt::format("{} has no {} left: {} are in use here", owner_, text(bytes), text(now.used));
      if (now.total != 0)
        message += fmt::format(", {} of {} are free", text(now.free), text(now.total));
      return Error{Code::resource_exhausted,
                   message + "; take a smaller batch or model, or free what others hold"};
    }
    ++statistics_.allocations;
    statistics_.used += size;
    statistics_.most_used = std::max(statistics_.most_used, statistics_.used);
  }
  std::shared_ptr<void> owner(
      block, [self = shared_from_this(), size](void* it) { self->put_back(it, size); });
  return Buffer::wrap(std::move(owner), static_cast<std::byte*>(block), bytes, kind_);
}

void* CachingAllocator::take(std::size_t size) {
  void* block = source_->take(size);
  if (block == nullptr && !kept_.empty()) {
    release_kept();
    block = source_->take(size);
  }
  if (block != nullptr) {
    statistics_.held += size;
    statistics_.most_held = std::max(statistics_.most_held, statistics_.held);
  }
  return block;
}

void CachingAllocator::put_back(void* block, std::size_t size) {
  MutexLock lock(mutex_);
  statistics_.used -= size;
  kept_.emplace(size, block);
  if (!keeps_) release_kept();
}

void CachingAllocator::release_kept() {
  for (const auto& [size, block] : kept_) {
    source_->give_back(block, size);
    statistics_.held -= size;
  }
  kept_.clear();
}

MemoryStatistics CachingAllocator::statistics() const {
  MutexLock lock(mutex_);
  MemoryStatistics now = statistics_;
  source_->look(now);
  return now;
}

void CachingAllocator::trim() {
  MutexLock lock(mutex_);
  release_kept();
}

}  // namespace troupe::kernels
