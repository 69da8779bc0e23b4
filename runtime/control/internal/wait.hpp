#pragma once

#include <functional>
#include <thread>

#include "runtime/base/clock.hpp"
#include "runtime/base/mutex.hpp"

namespace troupe::control {

/// `timeout` from now; the end of time for one that is too long to add.
TimePoint deadline_after(Duration timeout);

/// A wait that another thread can end, for good. Threads: any.
class Interrupt {
public:
  void raise();
  bool raised() const;
  /// Whether it was raised, by `until` at the latest.
  bool wait_until(TimePoint until) const;

private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool raised_ TROUPE_GUARDED_BY(mutex_) = false;
};

/// A thread that does something again and again until it is stopped.
/// Threads: start() and stop() from one at a time, stop() not from the step.
class Beat {
public:
  /// Returns the time to the next.
  using Step = std::function<Duration()>;

  Beat() = default;
  ~Beat() { stop(); }
  Beat(const Beat&) = delete;
  Beat& operator=(const Beat&) = delete;

  /// Once. The first step comes after `first`.
  void start(Duration first, Step step);
  /// Waits for the step under way.
  void stop();

private:
  Interrupt stopped_;
  std::thread thread_;
};

}  // namespace troupe::control
