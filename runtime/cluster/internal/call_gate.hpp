#pragma once

#include <cstddef>
#include <utility>

#include "runtime/base/mutex.hpp"

namespace troupe::cluster {

/// Lets calls through until it is closed, and closing waits for those that are inside. So what they
/// use can be taken down after it.
///
/// Threads: any.
class CallGate {
public:
  /// Held during a call; false if the gate was closed.
  class Pass {
  public:
    explicit Pass(CallGate* gate) : gate_(gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->exit();
    }
    explicit operator bool() const { return gate_ != nullptr; }

  private:
    CallGate* gate_;
  };

  Pass enter() {
    MutexLock lock(mutex_);
    if (closed_) return Pass(nullptr);
    ++inside_;
    return Pass(this);
  }
  void close() {
    MutexLock lock(mutex_);
    closed_ = true;
    while (inside_ != 0) left_.wait(mutex_);
  }

private:
  void exit() {
    MutexLock lock(mutex_);
    if (--inside_ == 0) left_.notify_all();
  }

  Mutex mutex_;
  CondVar left_;
  std::size_t inside_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool closed_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::cluster
