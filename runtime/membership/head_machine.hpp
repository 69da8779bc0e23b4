#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/membership/machine.hpp"
#include "runtime/membership/succession.hpp"

namespace troupe::membership {

/// The head's side: lets nodes in, watches them, and decides who is a member. Each decision is a
/// new generation.
///
/// A node comes in as a candidate: it is told whom to connect to (all that came before), says when
/// it is, and only then is in the next view. A member goes when it leaves, when a connection to it
/// breaks, when its process ends, when it was silent for longer than the limit, or when it and
/// another member have no connection. One that was put out and talks again is told so.
///
/// A head that follows another one first takes its members over (Succession). One that is told of a
/// later head goes.
///
/// Failure:   a node that breaks the protocol is put out; the head goes on.
/// Invariant: generations grow by one; the head is in every view.
class HeadMachine final : public Machine {
public:
  struct Options {
    Member self;
    Timing timing;
    std::size_t max_nodes = kMaxMembers;  ///< members and candidates
    std::uint64_t term = 1;               ///< above that of every head before
    SharedView last = nullptr;            ///< of the head before this one; null: there was none
  };

  /// Takes effect at once: the first generation is the head alone, unless there are members to take
  /// over.
  HeadMachine(Options options, TimePoint now);

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

  /// The operating system says that the member's process is no more.
  void process_ended(NodeId node, TimePoint now);
  /// This process must not lead any more. Out follows at once; the members wait for another head.
  void deposed(const Error& reason, TimePoint now);

private:
  /// Somebody who is in or on the way in.
  struct Node {
    Member member;
    Link actors;
    std::optional<Link> liveness;
    bool in = false;                ///< member, not candidate
    TimePoint heard;                ///< last sign of life
    std::optional<TimePoint> deaf;  ///< since when it says that it does not hear this head
    TimePoint came;
    std::uint64_t order = 0;  ///< of asking to join
    std::uint64_t told = 0;   ///< generation of the view that it was sent last
  };
  /// Somebody who was in. Its connection for liveness stays open for a while: one that was only
  /// paused reads there that it is out.
  struct Gone {
    Error reason;
    bool left = false;  ///< on its own
  };
  using Leavers = std::vector<std::pair<NodeId, Error>>;
  using Pair = std::pair<NodeId, NodeId>;

  void awake(TimePoint now);
  void succeed(TimePoint now);
  void received_early(Link link, NodeId from, const Message& message, TimePoint now);
  void on(Link link, NodeId from, const Join& join, TimePoint now);
  void on(Link link, NodeId from, const Mesh& mesh, TimePoint now);
  void on(Link link, NodeId from, const Leave& leave, TimePoint now);
  void on(Link link, NodeId from, const Heartbeat& heartbeat, TimePoint now);
  void on(Link link, NodeId from, const Suspect& suspect, TimePoint now);
  void on(Link link, NodeId from, const Drain& drain, TimePoint now);
  template <class Other>
  void on(Link link, NodeId from, const Other& other, TimePoint now);

  Status may_join(NodeId from, const Join& join) const;
  std::string unique_name(const std::string& wish) const;
  void admit(Node& node, TimePoint now);
  void drop_candidate(NodeId node, const Error& reason, TimePoint now);
  void remove(const Leavers& leavers, TimePoint now);
  void depart(const Node& node, const Error& why, TimePoint now);
  void remember(NodeId node, Gone gone);
  void tell_gone(Link link, const Gone& gone, bool asks);
  void breach(Link link, const std::string& what, TimePoint now);
  void forget(NodeId gone);
  void publish(View next, const std::vector<Departure>& departures, NodeId joiner);
  bool uses(const Node& node, Link link) const;
  void send(const Node& node, Message message);
  void find_silent(TimePoint now, Leavers& leavers);
  void find_unmeshed(TimePoint now, Leavers& leavers);
  void drop_slow_candidates(TimePoint now);
  void close_strangers(TimePoint now);
  void finish();

  const Options options_;
  SharedView view_;                                 ///< null while there are members to take over
  std::optional<Succession> succession_;            ///< until nobody is looked for any more
  std::vector<std::pair<Link, Join>> early_joins_;  ///< that came before there was a view
  std::map<NodeId, Node> nodes_;
  std::map<NodeId, Gone> gone_;
  std::deque<NodeId> gone_order_;        ///< oldest first, to bound gone_
  std::map<Link, NodeId> links_;         ///< all that are open
  std::map<Link, TimePoint> strangers_;  ///< those of nobody who is in `nodes_`
  std::map<Pair, TimePoint> unmeshed_;   ///< members that miss their connection, since when
  std::uint64_t last_order_ = 0;
  TimePoint last_event_;
  TimePoint next_tick_;
  std::optional<TimePoint> ending_;
  bool out_ = false;
};

}  // namespace troupe::membership
