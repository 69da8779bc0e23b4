#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/job/straggler_watch.hpp"
#include "actors/train/events.hpp"
#include "actors/train/messages.hpp"
#include "actors/train/non_finite.hpp"
#include "runtime/base/clock.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// A node that a job may use. Its place in a generation's list is the index of its reducer.
struct JobNode {
  NodeId node;
  std::string name;
  friend bool operator==(const JobNode&, const JobNode&) = default;
};

/// What a head that takes a running job over knows of it: from its nodes, and what the head before
/// had told.
struct Inherited {
  std::uint64_t term = 0;             ///< of the head that takes over
  std::uint64_t last_generation = 0;  ///< the highest that any actor is of
  std::uint64_t generation = 0;       ///< the last that began; 0: none did, or none is left of it
  std::vector<JobNode> nodes;         ///< of it, by index; no id: nothing was found there
  bool undisturbed = false;           ///< all of it are there and at work
  std::uint64_t steps_per_epoch = 0;
  std::uint64_t parameters = 0;
  std::uint64_t first_step = 0;
  std::uint64_t steps = 0;                           ///< that the observer was told of
  std::uint64_t epochs = 0;                          ///< likewise
  bool begun = false;                                ///< the observer was told that the job began
  bool cancelled = false;                            ///< somebody asked for its end
  std::optional<CheckpointWritten> checkpoint = {};  ///< the newest that is there
};

/// What must be the same on all nodes of a job; empty where it is not known.
struct Traits {
  std::string data;
  std::string weights;
  std::string program;
  std::string instruction_set;
};

/// A reducer: of the generation that is being prepared, or of one before that is still there.
struct StateSource {
  std::uint64_t generation = 0;
  std::size_t index = 0;
};

/// What a JobMachine has done for it. Called from inside its methods; only to queue.
class JobEffects {
public:
  virtual ~JobEffects() = default;
  /// All is ready, and the first step is about to begin. An error ends the job.
  virtual Status starting() = 0;
  /// Spawns the job's actors for `generation`; ends in deployed() or deployment_failed().
  virtual void deploy(std::uint64_t generation, const std::vector<JobNode>& nodes) = 0;
  /// The actors of `generation` are not needed any more.
  virtual void discard(std::uint64_t generation) = 0;
  /// Ends in halted() or unreachable().
  virtual void halt(std::uint64_t generation, std::size_t index) = 0;
  /// Has reducer `index` take the state of another, mostly of its generation; ends in pulled() or
  /// not_pulled().
  virtual void pull(std::uint64_t generation, std::size_t index, const StateSource& source) = 0;
  virtual void begin(std::size_t index, const Begin& begin) = 0;
  /// Ends in saved() or not_saved().
  virtual void save(std::uint64_t generation, std::size_t index, bool final_weights) = 0;
  /// The last call.
  virtual void ended(const JobEnded& end) = 0;
};

/// The protocol of a job over its life, without I/O: on which nodes it runs, from which step, and
/// how it ends.
///
/// Each change of its nodes is a new *generation*: the survivors' reducers halt, which gives up the
/// step in flight; the job's actors are spawned anew, where the weights stay with their node; who
/// is behind, or new, takes the state of the most advanced one; when all have the same, the job
/// goes on with the step that was given up. A step's result is the same whoever computes it, so
/// which nodes finished it before the change does not matter, as long as one of them is left.
///
/// Threads: one. Failure: whatever cannot be mended ends the job with an error, and with a
/// checkpoint if some node still has the state.
class JobMachine {
public:
  struct Options {
    JobStarted started;                        ///< all but what the actors say of data and model
    std::uint32_t min_nodes = 1;               ///< with fewer the job waits
    std::uint32_t max_nodes = 0;               ///< uses no more; 0: as many as there are ranks
    Duration wait = std::chrono::seconds(60);  ///< for nodes, below min_nodes
    StragglerWatch::Options stragglers = {};
  };

  JobMachine(Options options, JobEffects& effects, JobObserver& observer);

  /// The nodes that are there at the beginning.
  void start(std::vector<JobNode> nodes, TimePoint now);
  /// Instead of start(): the job was begun under another head. Where nothing happened to its nodes
  /// since, they are not disturbed.
  void inherit(const Inherited& inherited, std::vector<JobNode> nodes, TimePoint now);

  // What happens in the cluster.
  /// A node with slots is there, which would compute like this. One that would compute otherwise
  /// than those that are there is left out.
  void joined(const JobNode& node, const Traits& traits, TimePoint now);
  /// A node has come that cannot work for this job.
  void unfit(const JobNode& node, const Error& reason);
  void departed(NodeId node, const Error& reason, TimePoint now);
  /// It is to leave: the job goes on without it, once others have its state.
  void draining(NodeId node, TimePoint now);
  void tick(TimePoint now);
  void cancel(TimePoint now);

  // Answers to effects; those of an older generation are ignored.
  void deployed(std::uint64_t generation, std::size_t actors, TimePoint now);
  void deployment_failed(std::uint64_t generation, const Error& reason, TimePoint now);
  void halted(std::uint64_t generation, std::size_t index, std::uint64_t steps_done, TimePoint now);
  void unreachable(std::uint64_t generation, std::size_t index, TimePoint now);
  void pulled(std::uint64_t generation, std::size_t index, const Pulled& state, TimePoint now);
  void not_pulled(std::uint64_t generation, std::size_t index, const Error& reason, TimePoint now);
  void saved(std::uint64_t generation, bool final_weights, const Saved& saved, TimePoint now);
  void not_saved(std::uint64_t generation, bool final_weights, const Error& reason, TimePoint now);

  // What the job's actors say.
  void ready(const Ready& x, TimePoint now);
  void step(const StepFinished& x);
  void skipped(const NonFinite& x);  ///< why a step left the weights as they were
  void epoch(const EpochFinished& x);
  void evaluated(const Evaluated& x);  ///< of the last epoch
  void last_step(const LastStepDone& x);
  /// A checkpoint is on disk.
  void checkpoint(const CheckpointWritten& x);
  void pace(const Pace& x, TimePoint now);
  void failed(const Failed& x, TimePoint now);

  bool over() const noexcept { return phase_ == Phase::over; }

private:
  /// How long to wait for news of a node that could not be reached, before it is tried again.
  static constexpr Duration kRetryAfter = std::chrono::seconds(3);

  enum class Phase {
    waiting,    ///< for enough nodes
    preparing,  ///< the generation's actors are spawned and get the same state
    running,
    halting,  ///< for a change
    saving,   ///< the final weights
    ending,   ///< with an error: halting and saving what there is
    over,
  };
  /// A generation's reducers, by index.
  struct Holder {
    bool lost = false;
    bool halting = false;
    bool pulling = false;
    std::uint64_t steps_done = 0;
    std::string state_hash;
  };
  struct Generation {
    std::uint64_t number = 0;
    std::vector<JobNode> nodes;
    std::vector<Holder> holders;
  };

  /// No node of the current generation has the weights any more.
  bool all_lost() const;
  std::vector<JobNode> choose() const;
  void place(TimePoint now);
  void change(std::string reason, TimePoint now);
  void halt_all(TimePoint now);
  void after_halt(TimePoint now);
  void check_ready(TimePoint now);
  Status compare(const Traits& traits, const std::string& place);
  std::string place_of(const Ready& x) const;
  static std::string text(const JobNode& node);
  void retry_or_end(Error reason, TimePoint now);
  Holder* take_halting(std::uint64_t generation, std::size_t index);
  std::pair<StateSource, Holder> most_advanced() const;
  void save_while_waiting();
  void begin(TimePoint now);
  void on_epoch(const EpochFinished& x);
  std::uint64_t epochs_done() const { return steps_done_ / started_.steps_per_epoch; }
  void end_with(Error reason, TimePoint now);
  void save_next(bool final_weights);
  void end_without_checkpoint();
  void end_if_complete();
  void end(Code code, std::string message, std::string path = {}, std::string sha256 = {});

  const Options options_;
  JobEffects& effects_;
  JobObserver& observer_;

  Phase phase_ = Phase::waiting;
  std::optional<TimePoint> deadline_;  ///< what tick() looks at
  std::vector<JobNode> members_;       ///< of the cluster, in the order of joining
  std::uint64_t generation_ = 0;
  /// The one that is being prepared, or that runs; before it begins, also the one that ran.
  Generation next_, current_;
  bool has_begun_ = false;
  std::optional<std::size_t> actors_;  ///< of next_, once deployed
  std::set<std::string> ready_;        ///< the actors that said so
  std::string change_reason_;
  StragglerWatch stragglers_;
  TimePoint changed_at_, placed_at_, ready_at_;  ///< of the change that is under way

  JobStarted started_;
  std::uint64_t steps_done_ = 0;
  std::uint64_t reported_ = 0;  ///< steps told to the observer
  /// What the first that said so has, and which node that is.
  std::pair<std::string, std::string> data_, weights_, program_, instructions_;
  std::map<std::uint32_t, Evaluated> last_test_;  ///< by rank
  std::uint64_t epochs_evaluated_ = 0;
  std::set<std::pair<std::uint64_t, std::uint32_t>> told_skips_;  ///< step and rank
  std::uint64_t skips_ = 0;                                       ///< skipped steps

  std::optional<Error> failure_;     ///< why it is ending
  std::optional<Error> save_error_;  ///< the last
  std::vector<bool> save_tried_;
  bool saving_ = false;
  std::optional<Saved> result_;
  std::optional<CheckpointWritten> checkpoint_;  ///< the newest
};

}  // namespace troupe::train
