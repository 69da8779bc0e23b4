#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/status.hpp"

namespace troupe {

/// A node's 128-bit name, random at each start: a restarted node is a new node. All zero is "none".
struct NodeId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// From the operating system's random numbers.
  static NodeId random();
  /// Reads what to_string() wrote (32 hex digits).
  static Result<NodeId> parse(std::string_view text);

  bool valid() const noexcept { return high != 0 || low != 0; }
  auto operator<=>(const NodeId&) const = default;
};

/// 32 lower-case hex digits.
std::string to_string(NodeId id);
/// The first eight of them, for logs.
std::string short_name(NodeId id);

}  // namespace troupe

template <>
struct std::hash<troupe::NodeId> {
  std::size_t operator()(troupe::NodeId id) const noexcept {
    return static_cast<std::size_t>(id.high ^ (id.low * 0x9E3779B97F4A7C15ull));
  }
};
