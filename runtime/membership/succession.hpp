#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/membership/machine.hpp"

namespace troupe::membership {

/// How a new head takes over the cluster of a former one: it connects to every member that the last
/// known view has, says that it leads now, and is told of a later view where there is one. It is
/// done when all have followed, or at the latest after three limits of silence. Who did not is
/// looked for a while longer, to be told that it is out.
///
/// A part of HeadMachine: no I/O, values only. Threads: one at a time.
class Succession {
public:
  using Act = std::function<void(Action)>;

  /// One that follows the new head.
  struct Follower {
    Member member;
    Link actors;
    Link liveness;
  };
  struct Outcome {
    SharedView last;                  ///< the latest view that any of them had
    std::vector<Follower> followers;  ///< members of it, in its order
    std::vector<Departure> departed;  ///< members of it that did not answer, left, or led before
    /// Members of an earlier view that this one has put out, and how to tell them, if there is a
    /// way.
    std::vector<std::pair<NodeId, std::optional<Link>>> former;
  };

  /// Connects to all at once. `takeover` is what they are told; its generation is `last`'s.
  Succession(Takeover takeover, SharedView last, Act act, TimePoint now);

  /// A Connect's result; false if it is none of these. `node` is who answered.
  bool connect_done(ConnectId id, const Result<Link>& result, NodeId node, TimePoint now);
  void followed(Link link, NodeId from, const Followed& answer, TimePoint now);
  void left(NodeId from);
  void lost(Link link, TimePoint now);
  void tick(TimePoint now);

  /// Nobody is looked for any more.
  bool over(TimePoint now) const { return now >= deadline_ + takeover_.timing.headless; }
  bool done(TimePoint now) const;
  Outcome outcome() const;

private:
  struct Way {
    ConnectId connect = 0;  ///< under way; 0 if none
    std::optional<Link> link;
    int failures = 0;
    TimePoint retry_at;
  };
  struct Sought {
    Member member;
    Way liveness, actors;
    bool followed = false;
    bool left = false;
  };

  void seek(const View& view, TimePoint now);
  void start(Sought& sought, Plane plane);
  static Way& way(Sought& sought, Plane plane) {
    return plane == Plane::liveness ? sought.liveness : sought.actors;
  }
  static bool given_up(const Sought& sought);
  bool late(TimePoint now) const { return now >= deadline_; }
  static bool complete(const Sought& sought) {
    return sought.followed && sought.actors.link && sought.liveness.link;
  }

  const Takeover takeover_;
  const Act act_;
  const TimePoint deadline_;
  SharedView last_;
  std::map<NodeId, Sought> sought_;
  ConnectId last_connect_ = 0;
};

}  // namespace troupe::membership
