#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe {

/// This program again, as `child --child arguments...`, its standard output on a pipe. Killed at
/// the end of scope. Threads: one.
class ChildProcess {
public:
  explicit ChildProcess(std::vector<std::string> arguments) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    // UCX's sockets are not close-on-exec.
    ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    arguments.insert(arguments.begin(), {"child", "--child"});
    std::vector<char*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, pointers.data(), environ),
              0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  ~ChildProcess() {
    kill();
    std::fclose(output_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  void signal(int number) const { ::kill(pid_, number); }
  /// Kills it if it still runs, and waits for its end.
  void kill() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    (void)wait();
  }
  /// Its status, as waitpid() gives it. Once.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  /// The next line of its output, without the end; empty at the end.
  std::string line() {
    char text[4096];
    if (std::fgets(text, sizeof text, output_) == nullptr) return {};
    std::string result = text;
    if (!result.empty() && result.back() == '\n') result.pop_back();
    return result;
  }

private:
  pid_t pid_ = 0;
  FILE* output_ = nullptr;
};

}  // namespace troupe
