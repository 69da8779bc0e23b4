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
  /// A callback's stay. It ends with this, and a call in progress is over by then: what the
  /// callback refers to outlives it by being declared before.
  class [[nodiscard]] Handler {
  public:
    explicit Handler(Signals& signals) : signals_(&signals) {}
    ~Handler() { signals_->clear(); }
    Handler(const Handler&) = delete;
    Handler& operator=(const Handler&) = delete;

  private:
    Signals* signals_;
  };

  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// One callback at a time. It must not end its own Handler.
  Handler on_signal(std::function<void(int signal)> callback);

private:
  void clear();
  void wait();

  Mutex mutex_;
  CondVar called_;
  bool calling_ TROUPE_GUARDED_BY(mutex_) = false;
  std::function<void(int)> callback_ TROUPE_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace troupe::tool
