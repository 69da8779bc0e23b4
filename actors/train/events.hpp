#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.hpp"

namespace troupe::train {

// What a job says while it runs: to an observer in the head's process, and as CAF messages to those
// who watch it from elsewhere.

struct JobStarted {
  std::uint64_t job = 0;
  std::string name;
  std::uint32_t ranks = 0;
  std::uint32_t nodes = 0;
  std::uint64_t epochs = 0;
  std::uint64_t steps_per_epoch = 0;
  std::uint64_t first_step = 0;    ///< steps already done, by the checkpoint that was resumed from
  std::uint64_t global_batch = 0;  ///< samples of one step, over all ranks
  std::uint64_t parameters = 0;
};

/// A committed step; steps count from 0.
struct StepFinished {
  std::uint64_t step = 0;
  double loss = 0;          ///< mean over the step's samples
  double accuracy = 0;      ///< share of them classified right, 0..1
  double seconds = 0;       ///< that it took on the node that reports
  bool skipped = false;     ///< its gradient was not finite, and the weights stayed as they were
  std::uint64_t skips = 0;  ///< how many were skipped so far, since the job began
};

struct EpochFinished {
  std::uint64_t epoch = 0;   ///< from 0
  double test_loss = 0;      ///< mean over the test set
  double test_accuracy = 0;  ///< 0..1
  std::uint64_t test_samples = 0;
};

/// The nodes changed, and the job goes on: how long it took, and with what.
struct GenerationBegun {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;  ///< the first that is done by it; all before are done
  std::uint32_t nodes = 0;
  std::string reason;        ///< what changed
  double halt_seconds = 0;   ///< until those that are left had stopped
  double place_seconds = 0;  ///< from there until the actors were on their nodes
  double copy_seconds = 0;   ///< from there until all had the same state
};

struct CheckpointWritten {
  std::uint64_t step = 0;  ///< steps done in it
  std::string path;
};

/// Something a person should know, as one sentence.
struct Notice {
  std::string text;
};

struct JobEnded {
  std::uint16_t code = 0;   ///< Code; ok when it finished
  std::string message;      ///< the error's sentence
  std::uint64_t steps = 0;  ///< steps done
  std::string path;         ///< final weights, or the checkpoint to resume from
  std::string sha256;       ///< of the final weights' file
};

template <class Inspector>
auto inspect(Inspector& f, JobStarted& x) {
  return f(x.job, x.name, x.ranks, x.nodes, x.epochs, x.steps_per_epoch, x.first_step,
           x.global_batch, x.parameters);
}
template <class Inspector>
auto inspect(Inspector& f, StepFinished& x) {
  return f(x.step, x.loss, x.accuracy, x.seconds, x.skipped, x.skips);
}
template <class Inspector>
auto inspect(Inspector& f, EpochFinished& x) {
  return f(x.epoch, x.test_loss, x.test_accuracy, x.test_samples);
}
template <class Inspector>
auto inspect(Inspector& f, GenerationBegun& x) {
  return f(x.generation, x.step, x.nodes, x.reason, x.halt_seconds, x.place_seconds,
           x.copy_seconds);
}
template <class Inspector>
auto inspect(Inspector& f, CheckpointWritten& x) {
  return f(x.step, x.path);
}
template <class Inspector>
auto inspect(Inspector& f, Notice& x) {
  return f(x.text);
}
template <class Inspector>
auto inspect(Inspector& f, JobEnded& x) {
  return f(x.code, x.message, x.steps, x.path, x.sha256);
}

/// Hears what a job says. Calls come one at a time, from a thread of the job; they must return
/// soon.
class JobObserver {
public:
  virtual ~JobObserver() = default;
  virtual void on_started(const JobStarted&) {}
  virtual void on_step(const StepFinished&) {}
  virtual void on_epoch(const EpochFinished&) {}
  virtual void on_generation(const GenerationBegun&) {}
  virtual void on_checkpoint(const CheckpointWritten&) {}
  virtual void on_notice(const Notice&) {}
  virtual void on_ended(const JobEnded&) {}
};

}  // namespace troupe::train
