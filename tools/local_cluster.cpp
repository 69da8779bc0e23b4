#include "tools/local_cluster.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/child.hpp"

namespace troupe::tool {

using namespace std::chrono_literals;

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
  for (std::size_t i = 0; i < nodes; ++i) {
    std::vector<std::string> arguments{"troupe",  "node",
                                       "--head",  transport::to_string(head_),
                                       "--name",  fmt::format("node-{}", ++started_),
                                       "--slots", std::to_string(slots_),
                                       "--quiet"};
    if (!shared_memory_) arguments.emplace_back("--no-shared-memory");
    TROUPE_ASSIGN(pid_t pid, spawn_self(std::move(arguments), token_));
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
  reap(pids_, patience);
  for (pid_t pid : pids_) kill(pid, SIGTERM);
  reap(pids_, 2s);
  kill_and_reap(pids_);
}

}  // namespace troupe::tool
