#include "runtime/transport/internal/socket.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::transport {
namespace {

struct FreeInfo {
  void operator()(addrinfo* info) const { ::freeaddrinfo(info); }
};
using Info = std::unique_ptr<addrinfo, FreeInfo>;

Result<Info> resolve(const Address& address, bool passive) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0)
    return Error{Code::invalid_argument,
                 fmt::format("host \"{}\" cannot be resolved ({}): give its numeric address",
                             address.host, ::gai_strerror(error))};
  return Info(found);
}

bool loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0;
  return false;
}

void set(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

void no_delay(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

Error io_error(const Address& address, std::string_view what) {
  return Error{Code::io_error,
               fmt::format("cannot {} {}: {}", what, to_string(address), std::strerror(errno))};
}

Error unreachable(const Address& address, int error) {
  return Error{Code::unavailable,
               fmt::format("cannot connect to {} ({}): check that a node listens there",
                           to_string(address), std::strerror(error))};
}

std::uint16_t bound_port(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<bool> is_loopback(const Address& address) {
  TROUPE_ASSIGN(const Info info, resolve(address, true));
  return loopback(info->ai_addr);
}

Result<Socket> listen_tcp(const Address& address, Address& bound) {
  TROUPE_ASSIGN(const Info info, resolve(address, true));
  Socket socket(::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return io_error(address, "make a socket for");
  const int on = 1;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.fd(), info->ai_addr, info->ai_addrlen) != 0) {
    if (errno == EADDRINUSE)
      return Error{Code::address_in_use,
                   fmt::format("{} is in use: choose another port, or 0 for any free one",
                               to_string(address))};
    if (errno == EADDRNOTAVAIL)
      return Error{Code::invalid_argument,
                   fmt::format("{} is no address of this machine", to_string(address))};
    return io_error(address, "listen at");
  }
  if (::listen(socket.fd(), 128) != 0) {
    if (errno == EADDRINUSE)
      return Error{Code::address_in_use,
                   fmt::format("{} is in use: choose another port, or 0 for any free one",
                               to_string(address))};
    return io_error(address, "listen at");
  }
  bound = Address{address.host, bound_port(socket.fd())};
  return socket;
}

Result<Dialed> accept_tcp(const Socket& listener) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  Dialed dialed;
  dialed.socket = Socket(::accept4(listener.fd(), reinterpret_cast<sockaddr*>(&storage), &size,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!dialed.socket.valid()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
      return Error{Code::resource_exhausted,
                   fmt::format("cannot accept a connection: {}", std::strerror(errno))};
    return dialed;  // none waits, or it has gone again
  }
  no_delay(dialed.socket.fd());
  dialed.loopback = loopback(reinterpret_cast<sockaddr*>(&storage));
  return dialed;
}

Result<Dialed> dial_tcp(const Address& address) {
  TROUPE_ASSIGN(const Info info, resolve(address, false));
  Dialed dialed;
  dialed.socket = Socket(::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!dialed.socket.valid()) return io_error(address, "make a socket for");
  no_delay(dialed.socket.fd());
  dialed.loopback = loopback(info->ai_addr);
  if (::connect(dialed.socket.fd(), info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS)
    return unreachable(address, errno);
  return dialed;
}

void watch_host(const Socket& socket, Duration silence) {
  constexpr int kProbes = 3;
  const auto total = static_cast<int>(
      std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(silence).count(), 4, 3600));
  const int interval = std::max(1, total / 5);
  set(socket.fd(), IPPROTO_TCP, TCP_KEEPIDLE, total - kProbes * interval);
  set(socket.fd(), IPPROTO_TCP, TCP_KEEPINTVL, interval);
  set(socket.fd(), IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, 1);
}

Result<std::string> local_host_towards(const Address& other) {
  TROUPE_ASSIGN(const Info info, resolve(other, false));
  // Connecting UDP sends nothing; the kernel chooses the way.
  const Socket socket(::socket(info->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return io_error(other, "make a socket for");
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  if (::connect(socket.fd(), info->ai_addr, info->ai_addrlen) != 0 ||
      ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&local), &size) != 0)
    return unreachable(other, errno);
  char host[NI_MAXHOST];
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&local), size, host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return io_error(other, "name the way to");
  return std::string(host);
}

Status dial_result(const Socket& socket, const Address& address) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return unreachable(address, error);
  return {};
}

}  // namespace troupe::transport
