#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actors/config/job_config.hpp"
#include "actors/job/job_machine.hpp"
#include "actors/train/events.hpp"
#include "runtime/base/status.hpp"
#include "runtime/cluster/runtime.hpp"

namespace troupe::train {

/// Runs one job on a cluster from the head's process: builds its graph, places and starts its
/// actors, follows them to the end and takes them down again.
///
/// Ownership: borrows the runtime and the observer, which outlive it.
/// Threads:   `run()` blocks the thread that calls it; `cancel()` from any thread.
/// Failure:   when a node is lost the survivors stop, the most advanced one writes a checkpoint,
///            and run() returns `unavailable` with a sentence that names the node and the
///            checkpoint. Nothing of the job is left running, whatever run() returns.
class JobRunner {
public:
  struct Options {
    std::uint64_t job = 1;  ///< number of the job, unique in the cluster
    bool resume = false;    ///< go on from the newest valid checkpoint; error if there is none
    std::size_t nodes = 0;  ///< use so many of the cluster's nodes; 0: all that have slots
    /// The head before this one may have begun it.
    std::optional<Inherited> inherited = std::nullopt;
  };

  JobRunner(Runtime& runtime, JobConfig config, Options options, JobObserver& observer);
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// How it ended. An error is also told to the observer (on_ended).
  Result<JobEnded> run();

  /// Stops at the next step boundary with a checkpoint; run() then returns `cancelled`.
  void cancel();

private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe::train
