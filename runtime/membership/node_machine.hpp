#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/membership/machine.hpp"

namespace troupe::membership {

/// A node's side: gets in, stays connected to all members, follows the head's views, and knows when
/// it is out.
///
/// Getting in: connect to the head, ask, connect to everyone that the head names, say so, and be in
/// with the next view. Out is any of: refused, deadline, left, fenced (put out by the head),
/// the head ended the cluster, the head is lost.
///
/// A cluster may stand without its head for a while (Timing::headless): its nodes stay in their
/// last view, look whether the head comes back, and follow a new one that says it has taken over. A
/// node that has lost its head because it is cut off learns there that it was put out.
///
/// Failure:   whatever the head or others do, join() or Out comes; a peer that breaks the protocol
///            is closed.
/// Invariant: generations that it delivers grow.
class NodeMachine final : public Machine {
public:
  struct Options {
    Member self;              ///< `joined` and the final name are the head's to give
    transport::Address head;  ///< the head's address for actors
    Timing timing;            ///< until the head's is known
    Duration join_timeout = std::chrono::seconds(10);
    bool wait_for_head = false;                        ///< try again until then if none answers
    std::vector<transport::Address> other_heads = {};  ///< where it may be instead
  };

  /// Begins to join at once.
  NodeMachine(Options options, TimePoint now);

  void connected(Link link, NodeId node, TimePoint now) override;
  void connect_done(ConnectId id, Result<Link> result, TimePoint now) override;
  void received(Link link, const Message& message, TimePoint now) override;
  void malformed(Link link, const Error& what, TimePoint now) override;
  void lost(Link link, const Error& reason, TimePoint now) override;
  void tick(TimePoint now) override;
  TimePoint next_tick() const override { return next_tick_; }
  void leave(TimePoint now) override;
  void drain(NodeId node, TimePoint now) override;
  SharedView view() const override { return view_; }

private:
  /// After an attempt to connect that failed.
  static constexpr Duration kRetry = std::chrono::milliseconds(200);

  enum class State { connecting, asking, meshing, in, leaving, out };

  /// A connection that this node makes: to a member, or to the head's liveness.
  struct Target {
    Plane plane = Plane::actors;
    Member member;
    ConnectId connect = 0;  ///< under way; 0 if none
    TimePoint retry_at;     ///< if none is under way
    Error last_error;
  };
  /// The broken connection to the head, while the reason may still come over the other one.
  struct Doubt {
    Error reason;
    TimePoint since;
  };

  void awake(TimePoint now);
  void on(const Welcome& welcome, TimePoint now);
  void on(const Forget& forget, TimePoint now);
  void on(const Joined& joined, TimePoint now);
  void on(const Refused& refused, TimePoint now);
  void on(const ViewChanged& changed, TimePoint now);
  void on(const Amended& amended, TimePoint now);
  void on(const Released& released, TimePoint now);
  void on(const Heartbeat& heartbeat, TimePoint now);
  void on(const Fenced& fenced, TimePoint now);
  void on(const Ended& ended, TimePoint now);
  void on_takeover(Link link, const Takeover& takeover, TimePoint now);
  template <class Other>
  void on(const Other& other, TimePoint now);

  Status check_view(const View& view) const;
  Status check(const std::vector<Member>& members) const;
  void connect_to_head();
  void head_connected(Result<Link> result, TimePoint now);
  bool join_again(TimePoint now);
  void make_target(Plane plane, const Member& member, TimePoint now);
  void start(Target& target);
  void say_if_meshed();
  void follow(SharedView view, std::vector<Departure> departures, TimePoint now);
  void drop_departed(const View& before, std::vector<Departure>& departures);
  void suspect(NodeId node, const Error& reason);
  void head_link_lost(Link link, const Error& reason, TimePoint now);
  void head_lost(const Error& reason, TimePoint now);
  void look_for_head(TimePoint now);
  void head_found_again(Result<Link> result, TimePoint now);
  void go_out(Error reason);
  const transport::Address& head_address() const;
  void protocol_broken(Link link, const std::string& what);
  void head_broke(const std::string& what);
  void beat(TimePoint now);
  void watch_head(TimePoint now);
  void watch_mesh(TimePoint now);
  Error join_error() const;
  std::string head_text() const;
  bool joining() const { return state_ < State::in; }

  const Options options_;
  State state_ = State::connecting;
  Timing timing_;
  Member self_;
  NodeId head_;
  std::uint64_t term_ = 0;  ///< of the head
  std::set<NodeId> former_heads_;
  std::optional<transport::Address> taken_over_at_;  ///< by a head that came later
  std::optional<TimePoint> headless_;                ///< since when
  Error headless_why_;
  std::size_t attempts_ = 0;  ///< to connect to a head, to take its addresses in turn
  std::optional<Link> head_actors_;
  std::optional<Link> head_liveness_;
  ConnectId head_connect_ = 0;  ///< under way; 0 if none
  TimePoint head_retry_at_;
  ConnectId last_connect_ = 0;
  SharedView view_;                   ///< delivered
  std::map<NodeId, Member> earlier_;  ///< to be connected to, while meshing
  bool meshed_ = false;               ///< the head was told
  std::map<Link, NodeId> links_;
  std::map<NodeId, Link> peers_;      ///< first open connection for actors of each node
  std::map<NodeId, Target> targets_;  ///< still to be connected; the head's entry is its liveness
  std::map<NodeId, TimePoint> missing_;  ///< members without a connection, since when
  std::set<NodeId> to_drain_;            ///< asked for, and not in a view yet
  std::optional<Doubt> doubt_;
  std::uint64_t sequence_ = 0;
  TimePoint head_heard_;
  TimePoint last_event_;
  TimePoint next_tick_;
  TimePoint deadline_;  ///< of joining, later of leaving
};

}  // namespace troupe::membership
