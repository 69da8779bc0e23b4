#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/membership/message.hpp"

namespace troupe::membership {

// Bytes of the membership's messages: Cap'n Proto, schemas/membership.capnp. Threads: any.

/// The message as bytes. Sentences that are too long are cut.
std::vector<std::byte> encode(const Message& message);

/// Reads what encode() wrote, or whatever a stranger sent. Takes no more memory than a small
/// multiple of `bytes`. Error: `protocol_error` with what is wrong.
Result<Message> decode(std::span<const std::byte> bytes);

}  // namespace troupe::membership
