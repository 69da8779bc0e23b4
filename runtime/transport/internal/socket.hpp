#pragma once

#include <string>
#include <utility>

#include "runtime/base/status.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::transport {

/// Owns a file descriptor. -1 is none.
class Socket {
public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int fd() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }

private:
  int fd_ = -1;
};

/// A connected or connecting TCP socket, with what the handshake needs to know of it.
struct Dialed {
  Socket socket;
  bool loopback = false;
};

/// True for a host name or number that stays in this machine.
Result<bool> is_loopback(const Address& address);

/// Listens; `bound` is where. Errors: `address_in_use`, `invalid_argument`, `io_error`.
Result<Socket> listen_tcp(const Address& address, Address& bound);

/// Takes one waiting connection; none waiting gives an invalid Socket.
Result<Dialed> accept_tcp(const Socket& listener);

/// Begins to connect, without waiting. Errors: `invalid_argument` (no such host), `unavailable`.
Result<Dialed> dial_tcp(const Address& address);

/// An idle connection breaks when the other host was silent for so long (4 s at least). The kernels
/// ask each other, so a process that is stopped or busy has nothing to fear.
void watch_host(const Socket& socket, Duration silence);

/// Ok once connected. Errors: `unavailable` with the system's reason and the remedy.
Status dial_result(const Socket& socket, const Address& address);

}  // namespace troupe::transport
