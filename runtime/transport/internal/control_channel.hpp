#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/transport/internal/handshake.hpp"
#include "runtime/transport/internal/socket.hpp"

namespace troupe::transport {

/// Cuts a byte stream into control messages, without I/O. Each has 8 bytes before it: a magic
/// number and a length of at most kMaxMessage.
class ControlParser {
public:
  static constexpr std::size_t kMaxMessage = 64 << 10;

  void push(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  /// The next whole message. Errors: `protocol_error` if this is no Troupe peer.
  Result<std::optional<Bytes>> next();

  /// A message with its 8 bytes before it.
  static Bytes wrap(std::span<const std::byte> message);

private:
  Bytes buffer_;
};

/// The TCP connection of two nodes: carries the handshake, then stays open and silent. That it
/// closes is how a peer's end is noticed, whatever transport the messages take.
///
/// Threads: the progress thread only. Failure: `unavailable` once the other side closed.
class ControlChannel {
public:
  explicit ControlChannel(Socket socket) : socket_(std::move(socket)) {}

  int fd() const noexcept { return socket_.fd(); }
  const Socket& socket() const noexcept { return socket_; }
  /// Queues a message, and sends what the socket takes.
  Status send(std::span<const std::byte> message);
  /// Sends what is left. Errors: `unavailable`.
  Status flush();
  bool wants_write() const noexcept { return !unsent_.empty(); }

  /// Reads what there is into `messages`; nothing there is no error.
  Status receive(std::vector<Bytes>& messages);

  /// True if the other side has closed, or said something that was not read yet.
  bool disturbed() const;

  /// Sends nothing more; the other side sees the end.
  void finish();

private:
  Socket socket_;
  ControlParser parser_;
  Bytes unsent_;
};

}  // namespace troupe::transport
