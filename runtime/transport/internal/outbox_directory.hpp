#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "runtime/transport/internal/outbox.hpp"

namespace troupe::transport {

/// Finds a peer's outbox without a lock: every send does it.
///
/// Ownership: keeps every outbox (a few hundred bytes once closed) until it is destroyed.
/// Threads:   find() and last() any; add() the progress thread.
class OutboxDirectory {
public:
  static constexpr std::size_t kBlockSize = 1024;
  static constexpr PeerId kMaxPeers = kBlockSize * kBlockSize - 1;

  /// Null for a number that was never given.
  Outbox* find(PeerId id) const noexcept {
    if (id == 0 || id > kMaxPeers) return nullptr;
    const Block* block = blocks_[id / kBlockSize].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : (*block)[id % kBlockSize].load(std::memory_order_acquire);
  }
  PeerId last() const noexcept { return last_.load(std::memory_order_acquire); }

  /// The next number; 0 if all were given.
  PeerId add(std::shared_ptr<Outbox> outbox) {
    const PeerId id = last() + 1;
    if (id > kMaxPeers) return 0;
    auto& slot = blocks_[id / kBlockSize];
    if (slot.load(std::memory_order_relaxed) == nullptr) {
      owned_blocks_.push_back(std::make_unique<Block>());
      slot.store(owned_blocks_.back().get(), std::memory_order_release);
    }
    (*slot.load(std::memory_order_relaxed))[id % kBlockSize].store(outbox.get(),
                                                                   std::memory_order_release);
    owned_.push_back(std::move(outbox));
    last_.store(id, std::memory_order_release);
    return id;
  }

private:
  using Block = std::array<std::atomic<Outbox*>, kBlockSize>;
  std::array<std::atomic<Block*>, kBlockSize> blocks_{};
  std::atomic<PeerId> last_{0};
  std::vector<std::unique_ptr<Block>> owned_blocks_;
  std::vector<std::shared_ptr<Outbox>> owned_;
};

}  // namespace troupe::transport
