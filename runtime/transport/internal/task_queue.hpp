#pragma once

#include <functional>
#include <map>
#include <vector>

#include "runtime/base/clock.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::transport {

class Poller;

/// What other threads want of the progress thread, and the alarm that wakes it only if it sleeps.
///
/// Threads: post() and notify() any; the rest the progress thread.
class TaskQueue {
public:
  explicit TaskQueue(Poller& poller) : poller_(poller) {}

  /// False once closed: the task was not taken.
  bool post(std::function<void()> task);
  /// This peer's outbox has something.
  void notify(PeerId peer);

  /// Moves out what waits. True if there was anything.
  bool take(std::vector<std::function<void()>>& tasks, std::vector<PeerId>& peers);
  /// About to sleep: from now on callers wake the poller. False if something waits already.
  bool begin_sleep();
  void end_sleep();
  void close();

private:
  Poller& poller_;
  Mutex mutex_;
  std::vector<std::function<void()>> tasks_ TROUPE_GUARDED_BY(mutex_);
  std::vector<PeerId> peers_ TROUPE_GUARDED_BY(mutex_);
  bool closed_ TROUPE_GUARDED_BY(mutex_) = false;
  bool sleeping_ TROUPE_GUARDED_BY(mutex_) = false;
};

/// Tasks for later. Threads: the progress thread.
class Timers {
public:
  void add(TimePoint when, std::function<void()> task) { tasks_.emplace(when, std::move(task)); }
  /// Runs what is due.
  void run(TimePoint now);
  bool empty() const { return tasks_.empty(); }
  TimePoint next() const { return tasks_.begin()->first; }
  void clear() { tasks_.clear(); }

private:
  std::multimap<TimePoint, std::function<void()>> tasks_;
};

}  // namespace troupe::transport
