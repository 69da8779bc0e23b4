#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/membership/head_machine.hpp"
#include "runtime/membership/node_machine.hpp"

namespace troupe::membership {

/// A cluster in one thread: machines, a network with delays, and faults, all by one seed.
///
/// Messages of one connection keep their order; those of different connections overtake each other.
/// Where two processes are cut off from each other what they send is held until they are not, as
/// TCP does; a cut may be in one direction only. A paused process takes nothing until it goes on.
///
/// A control store outlives the heads: it has what the last of them wrote, a moment late.
///
/// After every event the invariants of the membership are checked; the first that breaks is kept in
/// failure().
class Simulation {
public:
  using Process = std::size_t;

  struct Options {
    Timing timing{std::chrono::milliseconds(100), std::chrono::milliseconds(400), Duration{}};
    Duration join_timeout = std::chrono::milliseconds(1500);
    Duration connect_timeout = std::chrono::milliseconds(600);
    Duration max_delay = std::chrono::milliseconds(30);  ///< of a message
    std::optional<Duration> delay = {};                  ///< of each, instead
    unsigned encode_one_in = 16;  ///< so many messages go through the codec; 0: none
    Duration store_delay = std::chrono::milliseconds(20);  ///< at most; of a view to the store
  };

  Simulation(std::uint64_t seed, Options options);

  /// The first, or one that takes over what the store has.
  Process start_head();
  Process start_node(std::string name = "node");
  /// Instead of start_head(): `nodes` that were let in by a head which is no more, connected to
  /// each other, and one that takes over from it. So a large cluster need not grow one by one.
  /// Wants a timing with time without a head. Returns the head; the nodes are those before it.
  Process start_cluster(std::size_t nodes);

  // Faults and wishes. Each acts now.
  void kill(Process p);
  void pause(Process p);
  void resume(Process p);
  void cut(Process a, Process b);
  /// Only what `from` sends does not arrive.
  void cut_one_way(Process from, Process to) { cuts_.insert({from, to}); }
  void heal(Process a, Process b);
  void heal_all();
  /// Breaks a connection for actors between the two, if there is one.
  void reset_connection(Process a, Process b);
  void leave(Process p);
  /// `p` asks for `node` to leave.
  void drain(Process p, Process node);
  /// `to` gets a message, or bytes that are none, from `from`'s connection.
  void inject(Process from, Process to, std::optional<Message> message);

  /// Runs what happens before `until`, or until an invariant breaks.
  void run_for(Duration how_long);
  void at(Duration from_now, std::function<void()> what);
  TimePoint now() const { return now_; }

  std::size_t processes() const { return procs_.size(); }
  NodeId id(Process p) const { return procs_[p].id; }
  bool alive(Process p) const { return procs_[p].alive; }
  /// The one of the latest term that lives and is not out; null if there is none.
  const Process* leader() const;
  std::uint64_t messages() const { return messages_; }
  /// What it sent, other than heartbeats. Bytes of what went through the codec.
  struct Traffic {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };
  const Traffic& sent(Process p) const { return procs_[p].sent; }
  /// When it got the view that it has.
  TimePoint view_since(Process p) const { return procs_[p].view_since; }
  bool paused(Process p) const { return procs_[p].paused; }
  /// Why it is out, null while it is not.
  const Error* out(Process p) const { return procs_[p].out ? &*procs_[p].out : nullptr; }
  SharedView view(Process p) const { return procs_[p].view; }
  bool in(Process p) const { return procs_[p].alive && !procs_[p].out && procs_[p].view; }
  std::size_t in_count() const {
    std::size_t count = 0;
    for (Process p = 0; p < procs_.size(); ++p) count += in(p) ? 1 : 0;
    return count;
  }
  const std::vector<Departure>& departures(Process p) const { return procs_[p].departures; }
  std::uint64_t events() const { return events_; }

  /// Empty while every invariant held.
  const std::string& failure() const { return failure_; }
  /// What must hold some time after the last fault; the sentence if it does not.
  std::string check_settled() const;

private:
  struct Reset {
    Error reason;
  };
  struct Established {
    ConnectId connect;
  };
  struct Garbage {};
  using Item = std::variant<Message, Reset, Established, Garbage>;

  struct Connection {
    Plane plane;
    Process ends[2];
    std::list<Item> toward[2];  // nothing while empty, and most of a mesh is
    TimePoint last[2];
    bool open[2] = {false, false};     ///< the machine knows it, and lost() has not come
    bool closing[2] = {false, false};  ///< sends nothing more
  };

  struct Event {
    enum class Kind : std::uint8_t { deliver, tick, arrive, refused, closed, call };
    TimePoint at;
    std::uint64_t order;
    Kind kind;
    std::uint8_t side = 0;
    Plane plane = Plane::actors;
    Process process = 0;    // whom it happens to
    std::size_t other = 0;  // connection, or who connects, or index of a call
    ConnectId connect = 0;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  struct Proc {
    NodeId id;
    std::unique_ptr<Machine> machine;
    bool head = false;
    std::set<NodeId> departed;  ///< as far as it was told
    bool alive = true;
    bool paused = false;
    std::optional<Error> out;
    SharedView view;
    TimePoint view_since;
    Traffic sent;
    std::vector<Departure> departures;
    std::vector<Event> deferred;
  };

  void depose(Process p);
  void let_in(Process p, const SharedView& view);
  Link connect_at_once(Plane plane, Process from, Process to);
  Duration delay();
  void push(Event event);
  void handle(Event event);
  void deliver(const Event& event);
  void arrive(const Event& event);
  void perform(Process p);
  void perform(Process p, Send& send);
  void perform(Process p, const Connect& connect);
  void perform(Process p, const Close& close);
  void perform(Process p, const NewView& view);
  void perform(Process p, const Out& out);
  void enqueue(std::size_t connection, unsigned side, Item item);
  void close_side(std::size_t connection, unsigned side, const Error& reason);
  bool is_cut(Process from, Process to) const { return cuts_.contains({from, to}); }
  Member member_of(Process p, const std::string& name) const;
  void fail(Process p, const std::string& what);
  unsigned side_of(const Connection& connection, Process p) const {
    return connection.ends[0] == p ? 0 : 1;
  }

  const Options options_;
  std::mt19937_64 random_;
  TimePoint now_{};
  std::vector<Event> queue_;  // a heap
  std::uint64_t order_ = 0;
  std::uint64_t events_ = 0;
  std::vector<Proc> procs_;
  std::deque<Connection> connections_;
  std::vector<std::function<void()>> calls_;
  std::set<std::pair<Process, Process>> cuts_;                    // from, to
  std::map<std::pair<NodeId, std::uint64_t>, SharedView> views_;  // by head and generation
  std::vector<Process> heads_;                                    // in the order of their terms
  SharedView stored_;
  std::uint64_t messages_ = 0;
  std::string failure_;
};

}  // namespace troupe::membership
