#include "runtime/transport/internal/control_channel.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>

namespace troupe::transport {
namespace {

constexpr std::uint32_t kMagic = 0x31505254;  // "TRP1"

struct Prefix {
  std::uint32_t magic = kMagic;
  std::uint32_t length = 0;
};

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

Result<std::optional<Bytes>> ControlParser::next() {
  Prefix prefix;
  if (buffer_.size() < sizeof prefix) {
    // Tell a stranger by its first bytes: it may never send eight.
    const std::size_t known = std::min(buffer_.size(), sizeof prefix.magic);
    if (known != 0 && std::memcmp(buffer_.data(), &prefix.magic, known) != 0)
      return Error{Code::protocol_error, "the other side does not speak Troupe's protocol"};
    return std::optional<Bytes>{};
  }
  std::memcpy(&prefix, buffer_.data(), sizeof prefix);
  if (prefix.magic != kMagic)
    return Error{Code::protocol_error, "the other side does not speak Troupe's protocol"};
  if (prefix.length > kMaxMessage)
    return Error{Code::protocol_error,
                 fmt::format("a control message of {} bytes is over the limit of {}", prefix.length,
                             kMaxMessage)};
  if (buffer_.size() - sizeof prefix < prefix.length) return std::optional<Bytes>{};
  const auto begin = buffer_.begin() + sizeof prefix;
  Bytes message(begin, begin + prefix.length);
  buffer_.erase(buffer_.begin(), begin + prefix.length);
  return std::optional<Bytes>{std::move(message)};
}

Bytes ControlParser::wrap(std::span<const std::byte> message) {
  Prefix prefix;
  prefix.length = static_cast<std::uint32_t>(message.size());
  Bytes out(sizeof prefix + message.size());
  std::memcpy(out.data(), &prefix, sizeof prefix);
  if (!message.empty()) std::memcpy(out.data() + sizeof prefix, message.data(), message.size());
  return out;
}

Status ControlChannel::send(std::span<const std::byte> message) {
  const Bytes wrapped = ControlParser::wrap(message);
  unsent_.insert(unsent_.end(), wrapped.begin(), wrapped.end());
  return flush();
}

Status ControlChannel::flush() {
  while (!unsent_.empty()) {
    const auto n =
        ::send(socket_.fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && would_block(errno)) return {};
    if (n < 0)
      return Error{Code::unavailable,
                   fmt::format("the connection broke: {}", std::strerror(errno))};
    unsent_.erase(unsent_.begin(), unsent_.begin() + n);
  }
  return {};
}

Status ControlChannel::receive(std::vector<Bytes>& messages) {
  std::byte chunk[4096];
  Status end;
  // A few chunks per call: a flood must not keep the thread from the other peers.
  for (int i = 0; i < 16 && end.ok(); ++i) {
    const auto n = ::recv(socket_.fd(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && would_block(errno)) break;
    if (n == 0) end = Error{Code::unavailable, "the other side closed the connection"};
    if (n < 0)
      end = Error{Code::unavailable, fmt::format("the connection broke: {}", std::strerror(errno))};
    if (n > 0) parser_.push({chunk, static_cast<std::size_t>(n)});
    for (;;) {
      TROUPE_ASSIGN(auto message, parser_.next());
      if (!message) break;
      messages.push_back(std::move(*message));
    }
  }
  return end;
}

bool ControlChannel::disturbed() const {
  std::byte byte;
  const auto n = ::recv(socket_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || !(would_block(errno) || errno == EINTR);
}

void ControlChannel::finish() {
  ::shutdown(socket_.fd(), SHUT_WR);
}

}  // namespace troupe::transport
