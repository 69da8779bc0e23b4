#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>

#include "runtime/base/mutex.hpp"

namespace troupe::transport {

/// Work that waits to run where its message arrived, with the way out if that cannot be.
/// Threads: any.
class InlineQueue {
public:
  struct Item {
    std::function<void()> work;
    std::function<void()> overflow;
  };

  /// False if it is full or closed: nothing was taken.
  bool push(std::function<void()> work, std::function<void()> overflow);
  std::optional<Item> pop();
  bool empty() const;
  /// Sends everything that waits its other way.
  void overflow_all();
  /// Takes nothing until opened again.
  void set_open(bool open);

private:
  static constexpr std::size_t kMaxItems = 256;
  mutable Mutex mutex_;
  std::deque<Item> items_ TROUPE_GUARDED_BY(mutex_);
  bool open_ TROUPE_GUARDED_BY(mutex_) = true;
};

}  // namespace troupe::transport
