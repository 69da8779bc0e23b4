#pragma once

#include <functional>
#include <thread>

#include "runtime/base/mutex.hpp"

namespace troupe::tool {

/// Turns SIGINT and SIGTERM into a call on a thread of its own. The library takes no signals; this
/// is the command's. Made first thing in main(), so that every thread inherits the blocked mask.
///
/// The first signal calls what on_signal() was given, and ends the process if that was nothing; the
/// second ends it at once.
/// Threads: one instance, owned by main().
class Signals {
public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// The last one given counts. Returns when a call of the one before, if there is one, is over;
  /// not from inside such a call.
  void on_signal(std::function<void(int signal)> callback);

private:
  void wait();

  Mutex mutex_;
  CondVar called_;
  bool calling_ TROUPE_GUARDED_BY(mutex_) = false;
  std::function<void(int)> callback_ TROUPE_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace troupe::tool
