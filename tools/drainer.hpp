#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "runtime/cluster/runtime.hpp"

namespace troupe::tool {

/// Sees to it that a node that is to leave does so when its work is done: once it is drained, by a
/// signal or from elsewhere, waits until it is idle, at most for a while, and stops the runtime.
///
/// Ownership: borrows the runtime. Threads: any.
class Drainer {
public:
  Drainer(Runtime& runtime, std::function<bool()> is_idle, Duration patience);
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  /// Asks the head for it; what follows comes with the next view, or at once if there is no head.
  void drain();

private:
  void begin();
  void work();
  bool may_go() const;

  Runtime& runtime_;
  const std::function<bool()> is_idle_;
  const Duration patience_;
  std::uint64_t subscription_ = 0;
  std::atomic<bool> begun_ = false;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::tool
