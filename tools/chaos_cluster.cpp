#include "tools/chaos_cluster.hpp"

#include <chrono>
#include <csignal>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/child.hpp"

namespace troupe::tool {
namespace {

using namespace std::chrono_literals;

/// One that was free a moment ago; the head must come back at the same.
std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  std::uint16_t port = 0;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    port = ntohs(address.sin_port);
  ::close(fd);
  return port;
}

}  // namespace

ChaosCluster::ChaosCluster(std::filesystem::path folder, NodeOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {
  options_.token = fresh_token();
  options_.head = fmt::format("127.0.0.1:{}", free_port());
  options_.name = "chaos";
}

ChaosCluster::~ChaosCluster() {
  auto all = nodes_;
  all.insert(all.end(), gone_.begin(), gone_.end());
  for (const pid_t pid : all) ::kill(pid, SIGCONT);
  if (head_ != 0) {
    ::kill(head_, SIGTERM);  // ends the cluster, and the nodes with it
    all.push_back(head_);
  }
  reap(all, 3s);
  kill_and_reap(all);
  std::error_code ignored;
  for (const char* file : {"chaos.db", "chaos.db-wal", "chaos.db-shm", "chaos.db.lock"})
    std::filesystem::remove(folder_ / file, ignored);
}

Result<Client> ChaosCluster::start(std::size_t nodes) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error)
    return Error{Code::io_error,
                 fmt::format("cannot make the folder {}: {}", folder_.string(), error.message())};
  TROUPE_TRY(start_head());
  for (std::size_t i = 0; i < nodes; ++i) TROUPE_TRY(add_node());
  TROUPE_ASSIGN(auto client, Client::connect(options_, true));
  TROUPE_TRY(client.runtime->wait_for_nodes(nodes, 30s));
  return client;
}

Status ChaosCluster::start_head() {
  TROUPE_ASSIGN(head_,
                spawn_self({"troupe", "head", "--listen", options_.head, "--store",
                            "sqlite:" + (folder_ / "chaos.db").string(), "--quiet",
                            "--heartbeat-period", fmt::format("{}", options_.heartbeat_period),
                            "--heartbeat-limit", fmt::format("{}", options_.heartbeat_limit)},
                           options_.token));
  return {};
}

void ChaosCluster::kill_head() {
  if (head_ == 0) return;
  ::kill(head_, SIGKILL);
  ::waitpid(head_, nullptr, 0);
  head_ = 0;
}

Status ChaosCluster::add_node() {
  std::vector<std::string> arguments{"troupe",         "node",   "--head",
                                     options_.head,    "--name", fmt::format("node-{}", ++started_),
                                     "--join-timeout", "30",     "--quiet"};
  if (options_.no_shared_memory) arguments.emplace_back("--no-shared-memory");
  TROUPE_ASSIGN(const pid_t pid, spawn_self(std::move(arguments), options_.token));
  nodes_.push_back(pid);
  return {};
}

void ChaosCluster::signal(pid_t node, int number, bool for_good) {
  ::kill(node, number);
  if (for_good && std::erase(nodes_, node) > 0) gone_.push_back(node);
}

}  // namespace troupe::tool
