#include "tests/tools/network.hpp"

#include <utility>

#include <gtest/gtest.h>
#include <unistd.h>

namespace troupe::tool {
namespace {

constexpr const char* kEnv = "/usr/bin/env";  // looks for a command along PATH

std::string port(int host) {
  return "port" + std::to_string(host);
}

/// Runs `ip`. Nothing, or what went wrong.
std::string ip(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ip");
  std::string command;
  for (const auto& word : arguments) command += (command.empty() ? "" : " ") + word;
  Process process(std::move(arguments), {}, kEnv);
  return process.wait() == 0 ? "" : "`" + command + "` fails: " + process.output();
}

}  // namespace

Network::Network(int hosts)
    : hosts_(hosts),
      prefix_("troupe-" + std::to_string(getpid()) + "-"),
      switch_(prefix_ + "switch") {
  if (geteuid() != 0) {
    missing_ = "network namespaces want root";
    return;
  }
  const auto make = [this](std::vector<std::string> arguments) {
    if (missing_.empty()) missing_ = ip(std::move(arguments));
  };
  make({"netns", "add", switch_});
  make({"-n", switch_, "link", "add", "bridge", "type", "bridge"});
  make({"-n", switch_, "link", "set", "bridge", "up"});
  for (int host = 1; host <= hosts_; ++host) {
    make({"netns", "add", space(host)});
    make({"-n", switch_, "link", "add", port(host), "type", "veth", "peer", "name", "eth0", "netns",
          space(host)});
    make({"-n", switch_, "link", "set", port(host), "master", "bridge", "up"});
    make({"-n", space(host), "address", "add", address(host) + "/24", "dev", "eth0"});
    make({"-n", space(host), "link", "set", "lo", "up"});
    make({"-n", space(host), "link", "set", "eth0", "up"});
  }
}

Network::~Network() {
  // Also what was made before something went wrong.
  for (int host = 1; host <= hosts_; ++host) ip({"netns", "delete", space(host)});
  ip({"netns", "delete", switch_});
}

std::unique_ptr<Process> Network::start(int host, std::vector<std::string> arguments,
                                        std::vector<std::string> environment) const {
  arguments.insert(arguments.begin(), {"ip", "netns", "exec", space(host), TROUPE_COMMAND});
  return std::make_unique<Process>(std::move(arguments), std::move(environment), kEnv);
}

void Network::unplug(int host) {
  EXPECT_EQ(ip({"-n", switch_, "link", "set", port(host), "down"}), "");
}

void Network::plug(int host) {
  EXPECT_EQ(ip({"-n", switch_, "link", "set", port(host), "up"}), "");
}

void Network::link_down(int host) {
  EXPECT_EQ(ip({"-n", space(host), "link", "set", "eth0", "down"}), "");
}

/// Frames for `to` carry the address of nobody. The other side's questions for ours are answered
/// all the same.
void Network::drop(int from, int to) {
  EXPECT_EQ(ip({"-n", space(from), "neigh", "replace", address(to), "lladdr", "02:00:00:00:00:00",
                "nud", "permanent", "dev", "eth0"}),
            "");
}

}  // namespace troupe::tool
