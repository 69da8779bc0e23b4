#include "tools/local_cluster.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::tool {
namespace {

using namespace std::chrono_literals;

/// A token that only this process and its children know.
std::string fresh_token() {
  return to_string(NodeId::random()) + to_string(NodeId::random());
}

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

/// Spawn attributes: a process group of its own (Ctrl-C reaches only this process, which then
/// drains the nodes), no blocked signals, no descriptors above 2.
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
                   fmt::format("cannot start a node process: {}", std::strerror(error))};
    return pid;
  }

private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::string describe_exit(pid_t pid, int status) {
  if (WIFSIGNALED(status))
    return fmt::format("node process {} was ended by signal {} ({})", pid, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("node process {} ended with exit code {}", pid, WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<Runtime>> LocalCluster::start(RuntimeOptions head, std::size_t nodes,
                                                     std::uint32_t slots) {
  head.name = "head";
  head.slots = 0;
  if (head.token.empty()) head.token = fresh_token();
  token_ = head.token;
  slots_ = slots;
  shared_memory_ = head.shared_memory;
  TROUPE_ASSIGN(auto runtime, Runtime::start_cluster(std::move(head)));
  head_ = runtime->address();
  TROUPE_TRY(add(nodes));
  return runtime;
}

Status LocalCluster::add(std::size_t nodes) {
  Spawner spawner;
  const auto environment = environment_with(token_);
  for (std::size_t i = 0; i < nodes; ++i) {
    std::vector<std::string> arguments{"troupe",  "node",
                                       "--head",  transport::to_string(head_),
                                       "--name",  fmt::format("node-{}", ++started_),
                                       "--slots", std::to_string(slots_),
                                       "--quiet"};
    if (!shared_memory_) arguments.emplace_back("--no-shared-memory");
    TROUPE_ASSIGN(pid_t pid, spawner.spawn(std::move(arguments), environment));
    pids_.push_back(pid);
  }
  return {};
}

Status LocalCluster::wait_for_nodes(Runtime& head, const std::atomic<bool>& interrupted) {
  constexpr auto kSlice = 50ms;
  constexpr auto kJoinTime = 30s;
  const auto deadline = std::chrono::steady_clock::now() + kJoinTime;
  for (;;) {
    auto status = head.wait_for_nodes(started_, kSlice);
    if (status.ok() || status.code() != Code::deadline_exceeded) return status;
    TROUPE_TRY(check());
    if (interrupted) return Error{Code::cancelled, "interrupted before all nodes were there"};
    if (std::chrono::steady_clock::now() > deadline)
      return Error{
          Code::deadline_exceeded,
          fmt::format("of {} node processes not all joined within {} s: {}; is one stopped, "
                      "or is this machine too small for so many?",
                      started_, kJoinTime.count(), status.error().message)};
  }
}

Status LocalCluster::check() {
  for (auto it = pids_.begin(); it != pids_.end(); ++it) {
    int status = 0;
    const pid_t pid = *it;
    if (waitpid(pid, &status, WNOHANG) == pid) {
      pids_.erase(it);
      return Error{Code::unavailable, describe_exit(pid, status)};
    }
  }
  return {};
}

void LocalCluster::stop(std::chrono::milliseconds patience) {
  auto reap_until = [this](std::chrono::steady_clock::time_point deadline) {
    for (;;) {
      std::erase_if(pids_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
      if (pids_.empty() || std::chrono::steady_clock::now() >= deadline) return;
      std::this_thread::sleep_for(2ms);
    }
  };
  reap_until(std::chrono::steady_clock::now() + patience);
  for (pid_t pid : pids_) kill(pid, SIGTERM);
  if (!pids_.empty()) reap_until(std::chrono::steady_clock::now() + 2s);
  for (pid_t pid : pids_) kill(pid, SIGKILL);
  for (pid_t pid : pids_) waitpid(pid, nullptr, 0);
  pids_.clear();
}

}  // namespace troupe::tool
