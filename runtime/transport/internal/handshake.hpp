#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::transport {

using Bytes = std::vector<std::byte>;

/// What each side says first.
struct Greeting {
  std::uint32_t protocol = kProtocolVersion;
  NodeId node;
  std::array<std::byte, 32> nonce{};  ///< fresh random bytes for each connection
  std::string name;
  std::string build;
  std::uint32_t process = 0;
  std::string host;  ///< machine and namespaces; equal on both sides: memory can be shared
  Address listens_at;
};

/// How to reach a side; said only to one whose proof holds.
struct Access {
  Bytes address;  ///< of the UCX worker
  std::uint64_t session = 0;
  std::uint64_t probe_at = 0;
  std::uint64_t probe_value = 0;
};

/// The talk of two nodes before anything else, without I/O: hello, proof, access, both ways.
///
/// A side proves that it knows the token by an HMAC over its role and both hellos (so over both
/// nonces and node ids); the connecting side goes first. Nothing but this class reads what comes
/// before both proofs hold.
///
/// Threads: one. Failure: an error is final; `refusal()` is what to tell the other side then.
class Handshake {
public:
  enum class Role : std::uint8_t { connector = 1, acceptor = 2 };

  Handshake(Role role, Greeting self, std::string token);

  /// What to send first; empty for the acceptor.
  Bytes start();

  /// Takes one message from the other side; `reply` is what to send back (empty: nothing).
  /// Errors: `version_mismatch`, `permission_denied`, `protocol_error`, or what the other refused
  /// with.
  Status on_message(std::span<const std::byte> message, Bytes& reply);

  /// Both proofs hold: time to offer access.
  bool proven() const noexcept { return stage_ >= Stage::access; }
  Bytes offer(const Access& access);

  /// The other side's access has come, too.
  bool done() const noexcept { return stage_ == Stage::done; }
  const Access& access() const { return *access_; }
  /// Valid once proven.
  const Greeting& other() const { return *other_; }

private:
  enum class Stage { hello, proof, access, done };

  Status on_hello(std::span<const std::byte> message, Bytes& reply);
  Status on_proof(std::span<const std::byte> proof, Bytes& reply);
  std::array<std::byte, 32> mac(Role role) const;
  Status check_version() const;

  const Role role_;
  const Greeting self_;
  const std::string token_;
  Stage stage_ = Stage::hello;
  Bytes connector_hello_, acceptor_hello_;
  std::optional<Greeting> other_;
  std::optional<Access> access_;
};

/// The message that says why the connection closes.
Bytes encode_refusal(const Error& reason);
/// The error in a refusal; nothing if the message is another or none at all.
std::optional<Error> decode_refusal(std::span<const std::byte> message);

}  // namespace troupe::transport
