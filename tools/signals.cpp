#include "tools/signals.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

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
}

void Signals::on_signal(std::function<void(int)> callback) {
  thread_ = std::thread([callback = std::move(callback)] {
    sigset_t set = handled();
    for (int count = 0;;) {
      int signal = 0;
      if (sigwait(&set, &signal) != 0 || signal == kWake) return;
      if (++count > 1) {
        static constexpr char text[] = "troupe: stopped at once by a second signal\n";
        [[maybe_unused]] auto n = write(STDERR_FILENO, text, sizeof text - 1);
        _exit(kInterrupted);
      }
      callback(signal);
    }
  });
}

Signals::~Signals() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
}

}  // namespace troupe::tool
