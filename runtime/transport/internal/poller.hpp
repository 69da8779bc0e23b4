#pragma once

#include <cstdint>
#include <span>

#include <sys/epoll.h>

#include "runtime/base/clock.hpp"
#include "runtime/base/status.hpp"
#include "runtime/transport/internal/socket.hpp"

namespace troupe::transport {

/// Waits on descriptors and for another thread's call.
///
/// Threads: the progress thread, except wake(): any.
class Poller {
public:
  /// Errors: `io_error`, `resource_exhausted`.
  Status open();

  /// Watches `fd`; `token` comes with its events. Level-triggered.
  Status add(int fd, std::uint64_t token, bool write = false);
  void change(int fd, std::uint64_t token, bool write);
  void remove(int fd);

  /// Events, at once or after at most `timeout` (negative: for ever). wake() ends it, and is not
  /// among the events.
  std::span<const epoll_event> wait(Duration timeout);
  void wake();

private:
  int wait_for(Duration timeout);

  static constexpr std::uint64_t kWake = ~std::uint64_t{0};
  Socket epoll_, event_;
  bool fine_waits_ = true;
  epoll_event events_[64]{};
};

}  // namespace troupe::transport
