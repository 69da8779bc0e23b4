#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::tool {

/// A child process whose output is kept. Ends it (SIGKILL) if it still runs at destruction.
class Process {
public:
  /// Starts the troupe command (or `program`) with these arguments and extra environment.
  explicit Process(std::vector<std::string> arguments, std::vector<std::string> environment = {},
                   std::string program = TROUPE_COMMAND);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;

  /// Reads output until `done` holds for all of it so far; false at the end of output or after
  /// `patience`.
  bool read_until(const std::function<bool(const std::string&)>& done,
                  std::chrono::seconds patience = std::chrono::seconds(60));
  bool read_until(const std::string& text) {
    return read_until([&](const std::string& all) { return all.find(text) != std::string::npos; });
  }

  /// Reads the rest and waits for the end. The exit code, or 128 + signal; -1 if it had to be
  /// killed for taking too long.
  int wait(std::chrono::seconds patience = std::chrono::seconds(300));

  /// stdout and stderr, as they came.
  const std::string& output() const { return output_; }

private:
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string output_;
};

/// A running `troupe head` on a free port of loopback, and where it listens.
struct Head {
  explicit Head(std::vector<std::string> environment = {}, std::vector<std::string> options = {});
  Process process;
  std::uint16_t port = 0;
  std::string address;
};

/// The final weights' hash in what the command printed; empty if there is none.
std::string hash_in(const std::string& output);

/// Direct children of a process.
std::vector<pid_t> children_of(pid_t pid);
/// True while there is such a process that is not a zombie.
bool runs(pid_t pid);
/// True if it has ended within ten seconds.
bool ends_soon(pid_t pid);
/// True if no signal waits to be taken by it within ten seconds.
bool takes_signals_soon(pid_t pid);

}  // namespace troupe::tool
