#include "bench/perftest.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::bench {

Child::Child(std::vector<std::string> words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  // UCX's sockets are not close-on-exec: a child that keeps them hides this process's end.
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  std::vector<char*> args;
  for (auto& word : words) args.push_back(word.data());
  args.push_back(nullptr);
  if (::posix_spawnp(&pid_, args[0], &actions, nullptr, args.data(), environ) != 0) pid_ = -1;
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  out_ = ::fdopen(ends[0], "r");
}

Child::~Child() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ != nullptr) std::fclose(out_);
}

std::string Child::line() {
  char text[512];
  if (out_ == nullptr || std::fgets(text, sizeof text, out_) == nullptr) return "";
  return {text, std::strcspn(text, "\n")};
}

bool have_perftest() {
  return std::system("command -v ucx_perftest >/dev/null 2>&1") == 0;  // NOLINT
}

double perftest(const std::string& tls, const std::string& test, std::size_t size, int iterations,
                int column, int port) {
  ::setenv("UCX_TLS", tls.empty() ? "all" : tls.c_str(), 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  std::vector<std::string> words = {"ucx_perftest",
                                    "-t",
                                    test,
                                    "-s",
                                    std::to_string(size),
                                    "-n",
                                    std::to_string(iterations),
                                    "-p",
                                    std::to_string(port)};
  Child server(words);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it does not say when it listens
  words.insert(words.end(), {"-f", "-v", "127.0.0.1"});
  Child client(words);
  double value = 0;
  for (auto line = client.line(); !line.empty(); line = client.line()) {
    std::size_t at = line.find_first_not_of(' ');  // small counts are indented
    if (at == std::string::npos || line[at] < '0' || line[at] > '9') continue;
    for (int i = 0; i < column && at != std::string::npos; ++i) at = line.find(',', at) + 1;
    value = std::atof(line.c_str() + at);
  }
  ::unsetenv("UCX_TLS");
  ::unsetenv("UCX_NET_DEVICES");
  return value;
}

}  // namespace troupe::bench
