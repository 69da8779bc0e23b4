#include "tools/signals.hpp"

#include <cstdlib>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "tools/exit_codes.hpp"

namespace troupe::tool {
namespace {

// Wakes the waiting thread at the end.
constexpr int kWake = SIGUSR2;

sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, kWake}) sigaddset(&set, signal);
  return set;
}

}  // namespace

Signals::Signals() {
  sigset_t set = handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this] { wait(); });
}

void Signals::on_signal(std::function<void(int)> callback) {
  MutexLock lock(mutex_);
  callback_ = std::move(callback);
}

void Signals::wait() {
  sigset_t set = handled();
  for (int count = 0;;) {
    int number = 0;
    if (sigwait(&set, &number) != 0 || number == kWake) return;
    std::function<void(int)> callback;
    {
      MutexLock lock(mutex_);
      callback = callback_;
    }
    if (++count > 1 || !callback) _exit(kInterrupted);
    callback(number);
  }
}

Signals::~Signals() {
  pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
}

}  // namespace troupe::tool
