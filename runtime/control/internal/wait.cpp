#include "runtime/control/internal/wait.hpp"

#include <utility>

#include "runtime/base/check.hpp"

namespace troupe::control {

TimePoint deadline_after(Duration timeout) {
  const TimePoint now = std::chrono::steady_clock::now();
  return timeout > TimePoint::max() - now ? TimePoint::max() : now + timeout;
}

void Interrupt::raise() {
  MutexLock lock(mutex_);
  raised_ = true;
  changed_.notify_all();
}

bool Interrupt::raised() const {
  MutexLock lock(mutex_);
  return raised_;
}

bool Interrupt::wait_until(TimePoint until) const {
  MutexLock lock(mutex_);
  while (!raised_ && std::chrono::steady_clock::now() < until) changed_.wait_until(mutex_, until);
  return raised_;
}

void Beat::start(Duration first, Step step) {
  TROUPE_CHECK(!thread_.joinable(), "a beat that was started");
  thread_ = std::thread([this, first, step = std::move(step)] {
    Duration pause = first;
    while (!stopped_.wait_until(deadline_after(pause))) pause = step();
  });
}

void Beat::stop() {
  stopped_.raise();
  if (thread_.joinable()) thread_.join();
}

}  // namespace troupe::control
