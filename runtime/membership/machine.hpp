#pragma once

#include <compare>
#include <cstdint>
#include <variant>
#include <vector>

#include "runtime/base/clock.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/membership/message.hpp"
#include "runtime/membership/view.hpp"

namespace troupe::membership {

/// A node has two networks, so that its being alive never waits behind bulk data.
enum class Plane : std::uint8_t {
  actors,    ///< carries actors' messages; of the membership only what comes before liveness is up
  liveness,  ///< carries heartbeats and the head's decisions, on a thread of its own
};

/// One connection of this process.
struct Link {
  Plane plane = Plane::actors;
  std::uint64_t number = 0;  ///< the transport's PeerId
  auto operator<=>(const Link&) const = default;
};

/// Number of one Connect, counted up by a machine.
using ConnectId = std::uint64_t;

struct Send {
  Link link;
  Message message;
};
/// Answered by connected() and connect_done(), or by connect_done() with an error.
struct Connect {
  ConnectId id = 0;
  Plane plane = Plane::actors;
  transport::Address address;
};
/// With an ok reason what was sent goes out first. Answered by lost().
struct Close {
  Link link;
  Status reason;
};
/// A view of a later generation is in force.
struct NewView {
  SharedView view;
  std::vector<Departure> departures;
};
/// This process is out of the cluster for good: never let in, left, put out, or without a head.
/// After it the machine only closes what comes. Emitted once.
struct Out {
  Error reason;
};

using Action = std::variant<Send, Connect, Close, NewView, Out>;

/// What the head's and the nodes' side have in common: events go in with the time at which they
/// happen, and what has to be done comes out. No I/O, no clock, no randomness inside.
///
/// Ownership: values only; the driver executes the actions in order, after each event.
/// Threads:   one at a time.
/// Failure:   every sequence of events is legal; what breaks the protocol closes that link.
class Machine {
public:
  virtual ~Machine() = default;

  /// A handshake is done: `node` is what the other side proved to be.
  virtual void connected(Link link, NodeId node, TimePoint now) = 0;
  /// How a Connect went. On success connected() of that link came before.
  virtual void connect_done(ConnectId id, Result<Link> result, TimePoint now) = 0;
  virtual void received(Link link, const Message& message, TimePoint now) = 0;
  /// Bytes came that are no message. `what` is decode()'s error.
  virtual void malformed(Link link, const Error& what, TimePoint now) = 0;
  /// Once for each connected().
  virtual void lost(Link link, const Error& reason, TimePoint now) = 0;
  /// To be called once a heartbeat period (see next_tick()). A late one is taken as this process
  /// having been stopped for a while, and silence during that time is held against nobody.
  virtual void tick(TimePoint now) = 0;
  virtual TimePoint next_tick() const = 0;
  /// Asks to go: a node leaves in order, a head ends its cluster. Out follows within a limit of
  /// silence, whatever others do.
  virtual void leave(TimePoint now) = 0;

  /// That member is to leave: it gets no new work. Its next view says so; nothing happens if it is
  /// no member.
  virtual void drain(NodeId node, TimePoint now) = 0;

  /// The newest view; null before the first.
  virtual SharedView view() const = 0;

  /// What has to be done since the last call.
  std::vector<Action> take_actions();

protected:
  void act(Action action);

private:
  std::vector<Action> actions_;
};

}  // namespace troupe::membership
