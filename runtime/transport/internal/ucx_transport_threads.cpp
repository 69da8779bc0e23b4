// The transport's two threads and how the lead goes from one to the other.
#include <pthread.h>

#include "runtime/transport/internal/ucx_transport.hpp"

namespace troupe::transport {
namespace {

constexpr Duration kTick = std::chrono::microseconds(500);
constexpr int kTicksToSleep = 40;  ///< without inline work
constexpr Duration kStopTime = std::chrono::seconds(1);
/// How long inline work may go on before messages are looked after again.
constexpr Duration kInlineTime = std::chrono::microseconds(100);

/// Not sched_yield(): with busy compute threads around that gives the core away for milliseconds,
/// while the spin ends within microseconds by itself, and who wakes from a sleep gets a core soon.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

TimePoint time_now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

void UcxTransport::run_thread(int index) {
  const std::string name = options_.thread_name.substr(0, 13) + (index == 0 ? "" : ".2");
  ::pthread_setname_np(::pthread_self(), name.c_str());
  leadership_.enroll(index);
  while (!finished_.load()) {
    if (leadership_.leader() == index)
      lead();
    else
      stand_by(index);
  }
}

/// Until the transport has stopped or the lead was taken away.
void UcxTransport::lead() {
  while (!finished_.load(std::memory_order_relaxed)) {
    const TimePoint now = time_now();
    const bool moved = turn(now);
    if (!run_inline_work()) return;
    if (stopping_ && (peers_.empty() || now >= stop_deadline_)) return finish_stop();
    // Work that did not get its turn waits here, and no event would wake this thread for it.
    if (active_.empty() && inline_.empty())
      sleep();
    else if (!moved)
      relax();
  }
}

/// False if the lead was taken away meanwhile: then nothing of the leader's may be touched.
bool UcxTransport::run_inline_work() {
  auto item = inline_.pop();
  if (!item) return true;
  const TimePoint until = time_now() + kInlineTime;
  while (item) {
    const auto term = leadership_.begin_run();
    wake_stand_in();
    item->work();
    if (!leadership_.end_run(term)) return false;
    // Peers that the work has sent to are flushed by the next turn; so no long series.
    if (time_now() >= until) break;
    item = inline_.pop();
  }
  return true;
}

void UcxTransport::wake_stand_in() {
  if (!stand_in_asleep_.load()) return;
  MutexLock lock(state_mutex_);
  stand_in_asleep_.store(false);
  stand_in_wakes_.notify_all();
}

/// Ticks while there is inline work, sleeps otherwise; returns with the lead, or at the end.
void UcxTransport::stand_by(int index) {
  inline_.set_open(true);
  auto seen = leadership_.observe();
  int quiet_ticks = 0;
  while (!finished_.load() && leadership_.leader() != index) {
    MutexLock lock(state_mutex_);
    if (quiet_ticks >= kTicksToSleep) {
      stand_in_asleep_.store(true);
      // Between the look and the sleep the leader may have begun: look once more.
      if (leadership_.observe() == seen)
        while (stand_in_asleep_.load() && !finished_.load()) stand_in_wakes_.wait(state_mutex_);
      stand_in_asleep_.store(false);
      quiet_ticks = 0;
    } else {
      stand_in_wakes_.wait_for(state_mutex_, kTick);
    }
    lock.unlock();
    const auto now = leadership_.observe();
    if (now == seen && leadership_.take_over(now)) {
      inline_.set_open(false);
      inline_.overflow_all();
      return;
    }
    quiet_ticks = now == seen ? quiet_ticks + 1 : 0;
    seen = now;
  }
}

void UcxTransport::stop() {
  {
    MutexLock lock(state_mutex_);
    if (std::exchange(stopped_, true)) return;
    if (!started_) {
      tasks_.close();
      return;
    }
  }
  tasks_.post([this] { begin_stop(); });
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void UcxTransport::begin_stop() {
  stopping_ = true;
  const TimePoint now = time_now();
  stop_deadline_ = now + kStopTime;
  timers_.add(stop_deadline_, [] {});  // wakes the loop
  for (auto& [key, socket] : listeners_) poller_.remove(socket.fd());
  listeners_.clear();
  for (auto& [key, peer] : peers_) {
    if (peer->connected()) {
      peer->close({}, now);
      activate(*peer);
    } else {
      peer->abandon(Error{Code::cancelled, "the transport has stopped"});
    }
  }
}

void UcxTransport::finish_stop() {
  tasks_.close();
  run_tasks();  // callers that wait for an answer get one
  for (auto& [key, peer] : peers_)
    peer->abandon(Error{Code::cancelled, "the transport has stopped"});
  active_.clear();
  keys_.clear();
  peers_.clear();
  timers_.clear();
  contexts_.clear();
  inline_.set_open(false);
  inline_.overflow_all();
  MutexLock lock(state_mutex_);
  finished_.store(true);
  stand_in_asleep_.store(false);
  stand_in_wakes_.notify_all();
}

}  // namespace troupe::transport
