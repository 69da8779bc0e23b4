#pragma once

#include <string>

#include <caf/error.hpp>
#include <caf/fwd.hpp>

#include "runtime/memory/buffer.hpp"

namespace troupe {

// A Buffer inside a CAF message. Between nodes one of 4 KiB or more travels out of band: it is sent
// from where it lies and lands in pooled memory, never copied into the message. A smaller one, and
// any in a serializer that is not the remoting's, is copied in line.

/// Buffers of this size and above travel as segments of their own.
inline constexpr std::size_t kOutOfBandBytes = 4096;

caf::error inspect(caf::serializer& sink, Buffer& buffer);
caf::error inspect(caf::deserializer& source, Buffer& buffer);
std::string to_string(const Buffer& buffer);

}  // namespace troupe
