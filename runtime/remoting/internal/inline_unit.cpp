#include "runtime/remoting/internal/inline_unit.hpp"

#include <algorithm>

#include <caf/scheduler/abstract_coordinator.hpp>

namespace troupe::remoting {

std::size_t CoolOff::place(const void* who) noexcept {
  // Actors begin at cache lines.
  const auto address = reinterpret_cast<std::uintptr_t>(who) >> 6;
  return (address ^ (address >> 10)) % std::tuple_size_v<decltype(slots_)>;
}

bool CoolOff::resting(const void* who, const Clock& clock) const noexcept {
  const auto& slot = slots_[place(who)];
  return slot.who.load(std::memory_order_relaxed) == who &&
         clock.now().time_since_epoch().count() < slot.until.load(std::memory_order_relaxed);
}

void CoolOff::note(const void* who, TimePoint ended, Duration took) noexcept {
  auto& slot = slots_[place(who)];
  const bool known = slot.who.load(std::memory_order_relaxed) == who;
  if (took < kLongRun) {
    if (known) slot.who.store(nullptr, std::memory_order_relaxed);
    return;
  }
  const int strikes =
      known ? std::min(slot.strikes.load(std::memory_order_relaxed) + 1, kMaxStrikes) : 1;
  const auto rest = kFirstRest * (Duration::rep{1} << (2 * (strikes - 1)));
  slot.strikes.store(strikes, std::memory_order_relaxed);
  slot.until.store((ended + rest).time_since_epoch().count(), std::memory_order_relaxed);
  slot.who.store(who, std::memory_order_relaxed);
}

InlineUnit::InlineUnit(caf::actor_system& system, caf::proxy_registry& proxies,
                       transport::Transport& transport, const Clock& clock, bool enabled)
    : caf::execution_unit(&system), transport_(transport), clock_(clock), open_(enabled) {
  proxy_registry_ptr(&proxies);
}

void InlineUnit::exec_later(caf::resumable* job) {
  if (!take(job)) schedule(job);
}

bool InlineUnit::take(caf::resumable* job) {
  // An actor that was overtaken while it ran here wakes others from a thread that no longer
  // carries the traffic.
  if (job->subtype() != caf::resumable::scheduled_actor || !transport_.on_progress_thread() ||
      cool_off_.resting(job, clock_) || !enter())
    return false;
  const bool taken = transport_.run_inline([this, job] { run(job); },
                                           [this, job] {
                                             schedule(job);
                                             leave();
                                           });
  if (!taken) leave();
  return taken;
}

void InlineUnit::run(caf::resumable* job) {
  const auto begin = clock_.now();
  const auto result = job->resume(this, kMessagesPerRun);
  const auto end = clock_.now();
  cool_off_.note(job, end, end - begin);
  // As CAF's workers do: whoever takes the job from a queue holds one reference to it.
  switch (result) {
    case caf::resumable::resume_later:
      if (end - begin >= CoolOff::kLongRun || !take(job)) schedule(job);
      break;
    case caf::resumable::awaiting_message:
    case caf::resumable::done:
      caf::intrusive_ptr_release(job);
      break;
    case caf::resumable::shutdown_execution_unit:
      schedule(job);  // meant for one of the scheduler's workers
      break;
  }
  leave();
}

void InlineUnit::schedule(caf::resumable* job) {
  system().scheduler().enqueue(job);
}

bool InlineUnit::enter() {
  MutexLock lock(mutex_);
  if (!open_) return false;
  ++inside_;
  return true;
}

void InlineUnit::leave() {
  MutexLock lock(mutex_);
  if (--inside_ == 0 && !open_) idle_.notify_all();
}

void InlineUnit::close() {
  MutexLock lock(mutex_);
  open_ = false;
}

void InlineUnit::wait_idle() {
  MutexLock lock(mutex_);
  while (inside_ != 0) idle_.wait(mutex_);
}

}  // namespace troupe::remoting
