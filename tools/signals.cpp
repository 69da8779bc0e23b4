#include "tools/signals.hpp"

#include <chrono>
#include <cstdlib>
#include <optional>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "tools/exit_codes.hpp"

namespace troupe::tool {
namespace {

// Wakes the waiting thread at the end.
constexpr int kWake = SIGUSR2;
/// Wrappers such as timeout(1) signal a process and then its group.
constexpr auto kOneAndTheSame = std::chrono::milliseconds(300);

sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, kWake}) sigaddset(&set, signal);
  return set;
}

}  // namespace

Signals::Signals() {
  sigset_t set = handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this] { wait(); });
}

Signals::Handler Signals::on_signal(std::function<void(int)> callback) {
  MutexLock lock(mutex_);
  callback_ = std::move(callback);
  return Handler(*this);
}

void Signals::clear() {
  MutexLock lock(mutex_);
  while (calling_) called_.wait(mutex_);
  callback_ = nullptr;
}

void Signals::wait() {
  sigset_t set = handled();
  std::optional<std::chrono::steady_clock::time_point> first;
  while (true) {
    int number = 0;
    if (sigwait(&set, &number) != 0 || number == kWake) return;
    const auto now = std::chrono::steady_clock::now();
    if (first) {
      if (now - *first > kOneAndTheSame) _exit(kInterrupted);
      continue;
    }
    first = now;
    std::function<void(int)> callback;
    {
      MutexLock lock(mutex_);
      callback = callback_;
      calling_ = callback != nullptr;
    }
    if (!callback) _exit(kInterrupted);
    callback(number);
    MutexLock lock(mutex_);
    calling_ = false;
    called_.notify_all();
  }
}

Signals::~Signals() {
  pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
}

}  // namespace troupe::tool
