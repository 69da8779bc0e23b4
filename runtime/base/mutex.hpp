#pragma once

#include <condition_variable>
#include <mutex>

// Clang's thread-safety annotations; nothing under other compilers.
#if defined(__clang__)
#define TROUPE_ATTRIBUTE_(x) __attribute__((x))
#else
#define TROUPE_ATTRIBUTE_(x)
#endif
#define TROUPE_CAPABILITY(x) TROUPE_ATTRIBUTE_(capability(x))
#define TROUPE_SCOPED_CAPABILITY TROUPE_ATTRIBUTE_(scoped_lockable)
#define TROUPE_GUARDED_BY(x) TROUPE_ATTRIBUTE_(guarded_by(x))
#define TROUPE_REQUIRES(...) TROUPE_ATTRIBUTE_(requires_capability(__VA_ARGS__))
#define TROUPE_ACQUIRE(...) TROUPE_ATTRIBUTE_(acquire_capability(__VA_ARGS__))
#define TROUPE_RELEASE(...) TROUPE_ATTRIBUTE_(release_capability(__VA_ARGS__))
#define TROUPE_TRY_ACQUIRE(...) TROUPE_ATTRIBUTE_(try_acquire_capability(__VA_ARGS__))
#define TROUPE_EXCLUDES(...) TROUPE_ATTRIBUTE_(locks_excluded(__VA_ARGS__))
#define TROUPE_NO_THREAD_SAFETY_ANALYSIS TROUPE_ATTRIBUTE_(no_thread_safety_analysis)

namespace troupe {

/// std::mutex that Clang's analysis understands.
class TROUPE_CAPABILITY("mutex") Mutex {
public:
  void lock() TROUPE_ACQUIRE() { mutex_.lock(); }
  void unlock() TROUPE_RELEASE() { mutex_.unlock(); }
  bool try_lock() TROUPE_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

private:
  std::mutex mutex_;
};

/// Holds a Mutex for a scope; may be released and taken again inside it.
class TROUPE_SCOPED_CAPABILITY MutexLock {
public:
  explicit MutexLock(Mutex& mutex) TROUPE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() TROUPE_RELEASE() {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() TROUPE_RELEASE() {
    mutex_.unlock();
    held_ = false;
  }
  void lock() TROUPE_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }

private:
  Mutex& mutex_;
  bool held_ = true;
};

/// Condition variable for Mutex. Wait in a loop over the guarded condition.
class CondVar {
public:
  void wait(Mutex& mutex) TROUPE_REQUIRES(mutex) { cv_.wait(mutex); }
  template <class Clock, class Dur>
  std::cv_status wait_until(Mutex& mutex, std::chrono::time_point<Clock, Dur> until)
      TROUPE_REQUIRES(mutex) {
    return cv_.wait_until(mutex, until);
  }
  template <class Rep, class Period>
  std::cv_status wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> how_long)
      TROUPE_REQUIRES(mutex) {
    return cv_.wait_for(mutex, how_long);
  }
  void notify_one() { cv_.notify_one(); }
  void notify_all() { cv_.notify_all(); }

private:
  std::condition_variable_any cv_;
};

}  // namespace troupe
