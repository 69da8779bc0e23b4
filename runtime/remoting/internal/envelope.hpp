#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.hpp"

namespace troupe::remoting {

/// What a message between nodes is; the numbers are those of schemas/envelope.capnp.
enum class Kind : std::uint16_t {
  message = 0,
  monitor = 1,
  down = 2,
  link = 3,
  unlink = 4,
  lookup = 5,
  found = 6,
  spawn = 7,
  spawned = 8,
  exit = 9,
};

/// Head of one message between nodes (schemas/envelope.capnp), as a plain value.
struct Envelope {
  Kind kind = Kind::message;
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
  std::uint64_t message_id = 0;
  std::uint64_t generation = 0;
};

/// An encoded head: one word that counts the words behind it, the root pointer, five words of data.
inline constexpr std::size_t kHeadBytes = 56;
using Head = std::array<std::byte, kHeadBytes>;

/// `body_bytes` follow the head. Takes no memory.
void encode(const Envelope& envelope, std::uint32_t body_bytes, Head& head);

struct Opened {
  Envelope envelope;
  std::span<const std::byte> body;
};

/// Reads a head and finds its body in the message `bytes` (8-byte aligned). Errors:
/// `protocol_error` for a head that is cut short or malformed, an unknown kind, a body of another
/// size than the head says.
Result<Opened> open(std::span<const std::byte> bytes);

}  // namespace troupe::remoting
