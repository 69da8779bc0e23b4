#include "runtime/transport/internal/inline_queue.hpp"

namespace troupe::transport {

bool InlineQueue::push(std::function<void()> work, std::function<void()> overflow) {
  MutexLock lock(mutex_);
  if (!open_ || items_.size() >= kMaxItems) return false;
  items_.push_back({std::move(work), std::move(overflow)});
  return true;
}

std::optional<InlineQueue::Item> InlineQueue::pop() {
  MutexLock lock(mutex_);
  if (items_.empty()) return std::nullopt;
  std::optional<Item> item(std::move(items_.front()));
  items_.pop_front();
  return item;
}

bool InlineQueue::empty() const {
  MutexLock lock(mutex_);
  return items_.empty();
}

void InlineQueue::overflow_all() {
  std::deque<Item> items;
  {
    MutexLock lock(mutex_);
    items.swap(items_);
  }
  for (Item& item : items) item.overflow();
}

void InlineQueue::set_open(bool open) {
  MutexLock lock(mutex_);
  open_ = open;
}

}  // namespace troupe::transport
