#include "tests/tools/process.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::tool {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Process::Process(std::vector<std::string> arguments, std::vector<std::string> environment,
                 std::string program) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  pipe_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  arguments.insert(arguments.begin(), program);
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, pointers(arguments).data(),
                  pointers(environment).data()) != 0)
    std::abort();
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(pipe_);
}

void Process::signal(int number) const {
  kill(pid_, number);
}

bool Process::read_until(const std::function<bool(const std::string&)>& done,
                         std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience;
  while (!done(output_)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{pipe_, POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
    char bytes[4096];
    const auto n = read(pipe_, bytes, sizeof bytes);
    if (n <= 0) return false;
    output_.append(bytes, static_cast<std::size_t>(n));
  }
  return true;
}

int Process::wait(std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience;
  // Its children hold the pipe too, so the end of output alone would say that all have ended.
  read_until([&](const std::string&) { return false; }, patience);
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
      pid_ = -1;
      return -1;
    }
    poll(nullptr, 0, 2);
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream file(task.path() / "children");
    for (pid_t child; file >> child;) children.push_back(child);
  }
  return children;
}

Head::Head(std::vector<std::string> environment, std::vector<std::string> options)
    : process(
          [&] {
            options.insert(options.begin(), {"head", "--listen", "127.0.0.1:0"});
            return std::move(options);
          }(),
          std::move(environment)) {
  EXPECT_TRUE(process.read_until("nodes join")) << process.output();
  std::smatch match;
  EXPECT_TRUE(std::regex_search(process.output(), match, std::regex("127.0.0.1:([0-9]+)")));
  port = static_cast<std::uint16_t>(std::stoi(match[1]));
  address = match[0].str();
}

std::string hash_in(const std::string& output) {
  std::smatch match;
  return std::regex_search(output, match, std::regex("sha256: ([0-9a-f]{64})")) ? match[1].str()
                                                                                : "";
}

bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const auto stat = text.str();
  const auto end = stat.rfind(')');
  return end != std::string::npos && end + 2 < stat.size() && stat[end + 2] != 'Z';
}

bool ends_soon(pid_t pid) {
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (runs(pid)) {
    if (Clock::now() > deadline) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

bool takes_signals_soon(pid_t pid) {
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  const auto pending = [pid] {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("ShdPnd:")) return line.find_first_not_of("0\t", 7) != line.npos;
    return true;
  };
  while (pending()) {
    if (Clock::now() > deadline) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace troupe::tool
