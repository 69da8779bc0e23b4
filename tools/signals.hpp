#pragma once

#include <functional>
#include <thread>

namespace troupe::tool {

/// Turns SIGINT and SIGTERM into a call on a thread of its own. The library takes no signals; this
/// is the command's. Made first thing in main(), so that every thread inherits the blocked mask.
///
/// The first signal calls `on_signal`; the second ends the process at once.
/// Threads: one instance, owned by main().
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Starts waiting. Call once.
  void on_signal(std::function<void(int signal)> callback);

 private:
  std::thread thread_;
};

}  // namespace troupe::tool
