#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/clock.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/membership/view.hpp"

namespace troupe::membership {

// What the head and the nodes say to each other, as structs; codec.hpp has their bytes.

/// Version of this conversation. A head refuses a node that speaks another.
inline constexpr std::uint32_t kProtocol = 3;

// Bounds of what is accepted from others.
inline constexpr std::size_t kMaxMembers = 4096;
inline constexpr std::size_t kMaxNameBytes = 128;
inline constexpr std::size_t kMaxHostBytes = 256;
inline constexpr std::size_t kMaxReasonBytes = 1024;
inline constexpr std::size_t kMaxMessageBytes = std::size_t{8} << 20;

/// How often a node is heard of, and how long silence may last. The head's hold for its cluster.
struct Timing {
  Duration period = std::chrono::milliseconds(100);
  Duration limit = std::chrono::seconds(1);
  /// How long a cluster stands without a head and waits for the next one; zero: it ends with its
  /// head, as nobody could know its members.
  Duration headless{};

  /// Error: `invalid_argument` with the values unless 1 ms <= period, 3 periods <= limit <= 1 h,
  /// 0 <= headless <= 7 days.
  Status validate() const;
};

/// A view is made once and shared by all that hold it.
using SharedView = std::shared_ptr<const View>;

/// Node to head, first: let me in.
struct Join {
  std::uint32_t protocol = kProtocol;
  Member member;
};
/// Head to node: you may come in once you are connected to all of these: every member, and everyone
/// who is on the way in and came before. So of any two nodes the later one connects, and those that
/// come at the same time do not wait for each other's views.
struct Welcome {
  Member you;
  std::vector<Member> earlier;
  Timing timing;
  std::uint64_t term = 1;  ///< of the head
};
/// Head to a node on its way in: no need to connect to that one any more.
struct Forget {
  NodeId node;
};
/// Node to head: I am connected to all earlier ones.
struct Mesh {};
/// Head to node: you are in; `view` is the first that has you.
struct Joined {
  SharedView view;
};
/// Head to node: you do not get in.
struct Refused {
  Error reason;
};
/// Head to members that may not have the generation before: after a change of heads.
struct ViewChanged {
  SharedView view;
  std::vector<Departure> departures;  ///< who is gone since the generation before
};
/// How one generation becomes the next.
struct Amendment {
  std::uint64_t generation = 0;  ///< of the view that comes of it; that before has one less
  std::vector<Member> changed;   ///< in their places, or new, in the order of joining
  std::vector<Departure> departures;
  std::uint64_t members = 0;  ///< how many there are then
};
/// Head to all other members: a whole view of a thousand members, for a thousand of them, is a
/// quarter of a gigabyte. The amendment is made once and shared by all that are told.
struct Amended {
  std::shared_ptr<const Amendment> amendment;
};
/// Node to head: I want to go.
struct Leave {};
/// Head to node: you are out of the view, go.
struct Released {};
/// Node to head; the head sends it back.
struct Heartbeat {
  std::uint64_t generation = 0;
  std::uint64_t sequence = 0;
  bool deaf = false;  ///< node to head: I have not heard of you for longer than the limit
};
/// Node to head: my connection to `node` broke.
struct Suspect {
  NodeId node;
  Error reason;
};
/// Head to node: you were put out; stop what you do.
struct Fenced {
  Error reason;
};
/// Node to head: this member, mostly itself, is to leave: it gets no new work.
struct Drain {
  NodeId node;
};
/// Head to node: there is no cluster any more.
struct Ended {
  Error reason;
};
/// A new head to each member that the one before it had, on the first connection between them: from
/// now on it decides. Answered with Followed, or Superseded.
struct Takeover {
  std::uint32_t protocol = kProtocol;
  std::uint64_t term = 0;        ///< of the new head; the higher one counts
  std::uint64_t generation = 0;  ///< of the last view that it knows of
  Member head;
  Timing timing;
};
/// Member to its new head. `view` is the member's, if it is of a later generation than the head
/// knows of; else null.
struct Followed {
  std::uint64_t term = 0;
  SharedView view;
};
/// Member to a former head: another one leads.
struct Superseded {
  std::uint64_t term = 0;  ///< of that other
};

using Message =
    std::variant<Join, Welcome, Mesh, Joined, Refused, ViewChanged, Leave, Released, Heartbeat,
                 Suspect, Fenced, Ended, Forget, Takeover, Followed, Superseded, Drain, Amended>;

/// The message's name in lower case, for sentences: "join".
std::string_view name_of(const Message& message);

}  // namespace troupe::membership
