#include "tools/child.hpp"

#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/node_id.hpp"

namespace troupe::tool {
namespace {

/// This process's environment with the token set.
std::vector<std::string> environment_with(const std::string& token) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, "TROUPE_TOKEN=", 13) != 0) result.emplace_back(*entry);
  if (!token.empty()) result.push_back("TROUPE_TOKEN=" + token);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

/// Spawn attributes: a process group of its own, no blocked signals, no descriptors above 2.
class Spawner {
public:
  Spawner() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    posix_spawnattr_init(&attributes_);
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&usual, signal);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Spawner() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  Result<pid_t> spawn(std::vector<std::string> arguments, std::vector<std::string> environment) {
    pid_t pid = 0;
    int error = posix_spawn(&pid, "/proc/self/exe", &actions_, &attributes_,
                            pointers(arguments).data(), pointers(environment).data());
    if (error != 0)
      return Error{Code::io_error,
                   fmt::format("cannot start a child process: {}", std::strerror(error))};
    return pid;
  }

private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

std::string fresh_token() {
  return to_string(NodeId::random()) + to_string(NodeId::random());
}

Result<pid_t> spawn_self(std::vector<std::string> arguments, const std::string& token) {
  return Spawner().spawn(std::move(arguments), environment_with(token));
}

void reap(std::vector<pid_t>& pids, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::erase_if(pids, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
    if (pids.empty() || std::chrono::steady_clock::now() >= deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void kill_and_reap(std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) kill(pid, SIGKILL);
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  pids.clear();
}

std::string describe_exit(pid_t pid, int status) {
  if (WIFSIGNALED(status))
    return fmt::format("node process {} was ended by signal {} ({})", pid, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("node process {} ended with exit code {}", pid, WEXITSTATUS(status));
}

}  // namespace troupe::tool
