#include "tests/runtime/control/etcd_server.hpp"

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::control {
namespace {

std::string find_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  return {};
}

}  // namespace

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

bool EtcdServer::installed() {
  return !find_program("etcd").empty();
}

std::unique_ptr<EtcdServer> EtcdServer::start() {
  std::unique_ptr<EtcdServer> server(new EtcdServer(free_port()));
  const std::string client = fmt::format("http://127.0.0.1:{}", server->port_);
  const std::string peer = fmt::format("http://127.0.0.1:{}", free_port());
  // It ends with this thread, even if a test crashes.
  std::vector<std::string> arguments{"setpriv",
                                     "--pdeathsig",
                                     "KILL",
                                     find_program("etcd"),
                                     "--name=test",
                                     "--data-dir=" + (server->data_ / "etcd"),
                                     "--listen-client-urls=" + client,
                                     "--advertise-client-urls=" + client,
                                     "--listen-peer-urls=" + peer,
                                     "--initial-advertise-peer-urls=" + peer,
                                     "--initial-cluster=test=" + peer,
                                     "--logger=zap"};
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const std::string log = server->data_ / "log";
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  const int failed =
      ::posix_spawnp(&server->pid_, "setpriv", &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return nullptr;

  const auto until = std::chrono::steady_clock::now() + seconds(30);
  while (!server->serves()) {
    if (std::chrono::steady_clock::now() > until) return nullptr;
    std::this_thread::sleep_for(milliseconds(20));  // between two looks at the condition
  }
  return server;
}

EtcdServer::~EtcdServer() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string EtcdServer::address(const std::string& prefix) const {
  return fmt::format("etcd://127.0.0.1:{}/{}", port_, prefix);
}

void EtcdServer::signal(int number) const {
  ::kill(pid_, number);
}

std::string EtcdServer::post(const std::string& path, const std::string& body) const {
  httplib::Client client("127.0.0.1", port_);
  const auto answer = client.Post(path, body, "application/json");
  return answer ? answer->body : std::string();
}

bool EtcdServer::serves() const {
  httplib::Client client("127.0.0.1", port_);
  const auto answer = client.Get("/health");
  return answer && answer->status == 200 && answer->body.find("\"true\"") != std::string::npos;
}

}  // namespace troupe::control
