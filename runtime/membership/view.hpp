#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe {

/// A node as the membership knows it.
struct Member {
  NodeId node;
  std::string name;             ///< for people; no two members have the same
  transport::Address address;   ///< of the transport that carries actors
  transport::Address liveness;  ///< of the transport that carries heartbeats
  std::string host;             ///< equal means: the same machine and namespace
  std::uint32_t process = 0;    ///< pid there
  std::uint32_t slots = 0;  ///< ranks it can compute at the same time; 0 for a head that only leads
  std::uint64_t joined = 0;  ///< generation at which it came in
  bool draining = false;     ///< it is to leave: gets no new work, and goes when it has none

  bool operator==(const Member&) const = default;
};

/// The members of one generation, in the order of joining. The head is among them.
struct View {
  std::uint64_t generation = 0;
  NodeId head;
  std::vector<Member> members;

  /// The member with this id, null if there is none.
  const Member* find(NodeId node) const;

  bool operator==(const View&) const = default;
};

/// Why a node went.
struct Departure {
  NodeId node;
  std::string name;
  Error reason;  ///< `cancelled` when it left on its own
};

}  // namespace troupe
