#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/transport/internal/control_channel.hpp"
#include "runtime/transport/internal/handshake.hpp"

namespace troupe::transport {

/// A TCP port that a test answers by hand.
struct Port {
  Port() : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
    address = {"127.0.0.1", ntohs(at.sin_port)};
  }
  ~Port() { ::close(fd); }
  int fd;
  Address address;
};

/// Speaks to a transport over plain TCP. Threads: one.
class Stranger {
public:
  explicit Stranger(const Address& address) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  /// The next that connects to `port`.
  explicit Stranger(const Port& port) : fd_(::accept(port.fd, nullptr, nullptr)) {}
  ~Stranger() { ::close(fd_); }
  void say(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;  // closed on us: as it should be
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  /// The next control message; nothing if the other side closed.
  std::optional<Bytes> hear() {
    for (;;) {
      auto message = parser_.next();
      if (!message.ok()) return std::nullopt;
      if (*message) return std::move(**message);
      std::byte chunk[1024];
      const auto n = ::recv(fd_, chunk, sizeof chunk, 0);
      if (n <= 0) return std::nullopt;
      parser_.push({chunk, static_cast<std::size_t>(n)});
    }
  }
  bool is_dropped() { return !hear(); }

private:
  int fd_;
  ControlParser parser_;
};

/// What a process of another make says first.
inline Greeting strange_greeting() {
  Greeting greeting;
  greeting.node = NodeId::random();
  greeting.name = "stranger";
  greeting.build = "some build";
  return greeting;
}

}  // namespace troupe::transport
