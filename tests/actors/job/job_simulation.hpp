#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "actors/job/job_machine.hpp"

namespace troupe::train {

/// A job's machine among simulated nodes, whose reducers do what the real ones do: exchange partial
/// sums, finish steps at different moments, halt, copy states. Time, delays, deaths, arrivals, cut
/// connections and heads that die come from a seed.
///
/// Messages of a pair keep their order, and those of different pairs overtake each other; while a
/// pair is cut, in one direction or both, what is sent waits, as TCP has it. A node that is out of
/// reach for too long is put out, and goes on for a while before it learns of that. What is said to
/// the head now and then comes twice. A new head asks the nodes what they hold.
///
/// A node's state is a number that each step changes: two nodes with the same number have done the
/// same steps, each once and in order.
class JobSimulation final : public JobEffects, public JobObserver {
public:
  /// Mistakes that the simulation must find, to show that it would.
  enum class Planted {
    nothing,
    vote_counted_twice,     ///< a reducer's word that it is ready arrives twice
    stale_generation,       ///< partial sums of an older placement are taken
    joiner_with_old_state,  ///< who joins says that it took the state, and did not
  };

  struct Options {
    std::uint64_t seed = 1;
    Planted planted = Planted::nothing;
    std::size_t nodes = 4;
    std::uint32_t ranks = 8;
    std::uint64_t steps_per_epoch = 5;
    std::uint64_t epochs = 4;
    std::size_t events = 6;   ///< deaths, arrivals, cuts
    std::size_t heads = 0;    ///< deaths of the head
    bool duplicates = false;  ///< one in eight messages to the head comes twice
    bool spare_one = true;    ///< the first node is neither killed nor cut off
    std::uint32_t min_nodes = 1;
    std::optional<std::uint64_t> cancel_at;  ///< milliseconds

    /// For large jobs without chance: each message takes this long, a step's computation too, and
    /// deploy() is three rounds of questions as in runtime/graph/deploy.cpp.
    std::optional<std::uint64_t> delay_us;
    std::optional<std::uint64_t> kill_at_us;  ///< the last node
    std::optional<std::uint64_t> join_at_us;
  };

  /// When a change of nodes came how far, in microseconds.
  struct Change {
    std::uint64_t known = 0;     ///< to the head
    std::uint64_t halted = 0;    ///< all have
    std::uint64_t deployed = 0;  ///< actors spawned, connected and started
    std::uint64_t ready = 0;     ///< all said so
    std::uint64_t pulled = 0;    ///< who was behind has the state
    std::uint64_t begun = 0;     ///< the last has its Begin
    std::size_t pulls = 0;
  };

  explicit JobSimulation(Options options);

  /// Until the job is over or nothing happens any more. The first broken invariant, or nothing.
  std::optional<std::string> run();

  const std::optional<JobEnded>& end() const { return end_; }
  std::uint64_t final_state() const { return final_state_; }
  std::size_t changes() const { return begun_ > 0 ? begun_ - 1 : 0; }
  /// One for each generation that was deployed; the first is the job's start.
  const std::vector<Change>& timeline() const { return timeline_; }
  std::size_t undisturbed() const { return undisturbed_; }  ///< takeovers that changed nothing
  static std::uint64_t state_after(std::uint64_t steps);

private:
  struct Reducer {
    std::size_t index = 0;
    std::vector<NodeId> nodes;
    std::uint64_t head = 0;  ///< the one that it talks to
    bool begun = false;
    bool running = false;
    bool finished = false;
    bool tested = false;  ///< the epoch before the step in flight
    std::uint64_t step = 0;
    /// By step and sender: the ranks in its sum.
    std::map<std::uint64_t, std::map<std::size_t, std::vector<std::uint32_t>>> partials;
  };
  struct Node {
    bool alive = true;
    std::uint64_t steps = 0;
    std::uint64_t state = 0;
    std::vector<EpochFinished> epochs;
    std::map<std::uint64_t, Reducer> reducers;  ///< by generation
  };

  // JobEffects
  Status starting() override { return {}; }
  void deploy(std::uint64_t generation, const std::vector<JobNode>& nodes) override;
  void discard(std::uint64_t generation) override;
  void halt(std::uint64_t generation, std::size_t index) override;
  void pull(std::uint64_t generation, std::size_t index, const StateSource& source) override;
  void begin(std::size_t index, const Begin& begin) override;
  void save(std::uint64_t generation, std::size_t index, bool final_weights) override;
  void ended(const JobEnded& end) override { end_ = end; }

  // JobObserver
  void on_started(const JobStarted& x) override;
  void on_step(const StepFinished& x) override;
  void on_epoch(const EpochFinished& x) override;
  void on_ended(const JobEnded&) override {}

  static JobMachine::Options machine_options(const Options& options);

  using Task = std::function<void()>;
  void after(std::uint64_t most_us, Task task);
  void schedule(std::uint64_t time_us, Task task) {
    queue_.emplace(std::pair{time_us, ++sequence_}, std::move(task));
  }
  /// In order per pair; lost if one of them is dead when it arrives. The head is no node.
  void send(NodeId from, NodeId to, Task task);
  /// To the head that `head` numbers; lost if that is no more.
  void to_head(NodeId from, std::uint64_t head, Task task);
  /// By the head that is there now; lost with it.
  void by_head(std::uint64_t most_us, Task task);
  /// A reducer does what the head says that deployed it, or the last that took it over.
  static bool obeys(const Reducer& reducer, std::uint64_t head) { return reducer.head == head; }
  bool headed() const { return machine_ != nullptr; }
  bool alive(NodeId node) const { return node == kHead || nodes_.at(node).alive; }
  void broken(const std::string& what);
  NodeId place_of(std::uint64_t generation, std::size_t index) const {
    return placements_.at(generation).at(index).node;
  }

  void plan_events();
  void copy_state(std::uint64_t generation, std::size_t index, NodeId source, std::uint64_t head);
  void deploy_in_rounds(std::uint64_t generation);
  void send_partials(NodeId from, std::uint64_t generation, std::uint64_t step);
  NodeId add_node();
  void join();
  void disturb();
  void kill(NodeId victim);
  void cut(NodeId victim);
  void drain(NodeId victim);
  void leave_when_idle(NodeId victim);
  void put_out(NodeId victim, const char* why);
  void lose_head();
  void start_head();
  void inherit(const std::map<NodeId, Node>& found);
  void adopt(NodeId id, std::uint64_t head, const Inherited& inherited);
  void deploy_on(NodeId node, std::uint64_t generation, std::size_t index);
  void tell_ready(NodeId node, std::uint64_t generation, std::size_t index);
  void watch_pull(std::uint64_t generation, std::size_t index, NodeId source);
  void watch_save(NodeId node, std::uint64_t generation, bool final_weights);
  void compute(NodeId node, std::uint64_t generation);
  void take_partial(NodeId node, std::uint64_t generation, std::uint64_t step, std::size_t from,
                    std::vector<std::uint32_t> ranks);
  std::vector<std::uint32_t> ranks_of(const Reducer& reducer) const;
  void finish_step(NodeId node, std::uint64_t generation);
  void evaluate(NodeId node, std::uint64_t generation);
  std::uint64_t total() const { return options_.steps_per_epoch * options_.epochs; }
  TimePoint now() const { return TimePoint{} + std::chrono::microseconds(now_); }

  static constexpr NodeId kHead{0, 0xffff};

  const Options options_;
  std::mt19937_64 random_;
  std::unique_ptr<JobMachine> machine_;  ///< null while there is no head
  std::uint64_t head_ = 1;               ///< its number
  std::uint64_t now_ = 0;                ///< microseconds
  std::uint64_t sequence_ = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Task> queue_;
  std::map<std::pair<NodeId, NodeId>, std::uint64_t> last_arrival_;
  std::map<std::pair<NodeId, NodeId>, std::uint64_t> cut_until_;
  std::map<NodeId, Node> nodes_;
  std::vector<JobNode> members_;  ///< as the control store has them
  std::vector<JobNode> joining_;  ///< while there is no head
  std::set<NodeId> draining_;
  std::uint64_t next_node_ = 1;
  std::map<std::uint64_t, std::vector<JobNode>> placements_;
  std::optional<JobEnded> end_;
  std::optional<std::string> broken_;
  std::uint64_t final_state_ = 0;
  std::uint64_t next_step_ = 0, next_epoch_ = 0;  ///< that the observer may hear of
  std::uint64_t told_epochs_ = 0;                 ///< by any head
  std::size_t begun_ = 0;
  std::size_t undisturbed_ = 0;
  std::vector<Change> timeline_;
  std::uint64_t known_ = 0;  ///< when the head heard of the last change
  bool cancelled_ = false;
};

}  // namespace troupe::train
