#pragma once

#include <optional>
#include <thread>

#include "runtime/base/clock.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/control/store.hpp"

namespace troupe::control {

/// A leader's time in office: until it is lost, or the time to which it was extended has come, or
/// it ends on its own. A thread of its own watches the time, so that no request that hangs can
/// delay the news.
///
/// Threads:   any; begin() and end() from one at a time, end() not from `on_lost`.
/// Invariant: `on_lost` is called at most once, and not after end().
class Tenure {
public:
  Tenure() = default;
  ~Tenure() { end(); }
  Tenure(const Tenure&) = delete;
  Tenure& operator=(const Tenure&) = delete;

  /// Once.
  void begin(TimePoint until, Store::Lost on_lost);
  /// Nothing if it is over.
  void extend(TimePoint until);
  void lose(Error why);
  void end();

  TimePoint until() const;
  bool begun() const;
  /// Ok while it lasts. Errors: `failed_precondition` before and after, with the reason.
  Status check() const;

private:
  void run();

  mutable Mutex mutex_;
  CondVar changed_;
  bool begun_ TROUPE_GUARDED_BY(mutex_) = false;
  bool ended_ TROUPE_GUARDED_BY(mutex_) = false;
  TimePoint until_ TROUPE_GUARDED_BY(mutex_);
  std::optional<Error> lost_ TROUPE_GUARDED_BY(mutex_);
  Store::Lost on_lost_;  ///< of the thread
  std::thread thread_;
};

}  // namespace troupe::control
