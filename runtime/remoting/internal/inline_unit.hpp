#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/proxy_registry.hpp>
#include <caf/resumable.hpp>

#include "runtime/base/clock.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::remoting {

/// Remembers which actors took long when they last ran where their message arrived. They rest: they
/// run on the scheduler for a while, which grows fourfold with each further long run and is
/// forgotten after a short one. (A single long run means little: the thread may have been
/// preempted.)
///
/// A table of fixed size, by address; of two actors in one place the later one is remembered.
/// Threads: any.
class CoolOff {
public:
  static constexpr Duration kLongRun = std::chrono::microseconds(200);
  static constexpr Duration kFirstRest = std::chrono::milliseconds(1);
  static constexpr int kMaxStrikes = 7;  ///< about 4 s

  bool resting(const void* who, const Clock& clock) const noexcept;
  void note(const void* who, TimePoint ended, Duration took) noexcept;

private:
  struct Slot {
    std::atomic<const void*> who{nullptr};
    std::atomic<Duration::rep> until{0};
    std::atomic<int> strikes{0};
  };
  static std::size_t place(const void* who) noexcept;
  std::array<Slot, 1024> slots_;
};

/// CAF's execution unit for what wakes up on the thread that carries all traffic: runs it there, as
/// the transport sees fit, which saves the wake-up of another thread. What comes from another
/// thread, what does not belong there, and what proved slow goes to CAF's scheduler.
///
/// Ownership: borrows all. Between close() and its end: wait_idle().
/// Threads:   any.
class InlineUnit final : public caf::execution_unit {
public:
  InlineUnit(caf::actor_system& system, caf::proxy_registry& proxies,
             transport::Transport& transport, const Clock& clock, bool enabled);

  void exec_later(caf::resumable* job) override;

  /// From now on everything goes to the scheduler.
  void close();
  /// Waits until nothing runs or waits here.
  void wait_idle();

private:
  /// As many messages as an actor may handle before others get their turn.
  static constexpr std::size_t kMessagesPerRun = 32;

  bool take(caf::resumable* job);
  void run(caf::resumable* job);
  void schedule(caf::resumable* job);
  bool enter();
  void leave();

  transport::Transport& transport_;
  const Clock& clock_;
  CoolOff cool_off_;
  Mutex mutex_;
  CondVar idle_;
  bool open_ TROUPE_GUARDED_BY(mutex_);
  std::size_t inside_ TROUPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::remoting
