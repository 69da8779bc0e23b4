#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <caf/actor_system_config.hpp>

#include "actors/train/events.hpp"

namespace troupe::train {

// To the job service; each is answered as said, or with a caf::error that holds our Error.

/// Answered with the job's number (std::uint64_t).
struct SubmitJob {
  std::string config;       ///< the job as TOML, paths absolute
  std::uint32_t nodes = 0;  ///< how many nodes to use; 0: all
  bool resume = false;
};
/// Answered with a JobRecord; from then on the sender gets the job's events, JobEnded last.
struct WatchJob {
  std::uint64_t job = 0;
};
/// Answered with a JobRecord.
struct CancelJob {
  std::uint64_t job = 0;
};
/// Answered with a JobTable.
struct ListJobs {};

struct JobRecord {
  std::uint64_t job = 0;
  std::string name;
  std::string state;  ///< "waiting", "running", "done", "failed", "cancelled"
  std::uint64_t step = 0;
  std::uint64_t steps = 0;
  double loss = 0;
  double test_accuracy = -1;  ///< of the last epoch, 0..1; negative: none yet
  std::string message;        ///< the error's sentence, or where the result is
  std::string sha256;         ///< of the final weights
  std::uint16_t code = 0;     ///< Code of how it ended, once it has
};
struct JobTable {
  std::vector<JobRecord> jobs;
};

template <class Inspector>
auto inspect(Inspector& f, SubmitJob& x) {
  return f(x.config, x.nodes, x.resume);
}
template <class Inspector>
auto inspect(Inspector& f, WatchJob& x) {
  return f(x.job);
}
template <class Inspector>
auto inspect(Inspector& f, CancelJob& x) {
  return f(x.job);
}
template <class Inspector>
auto inspect(Inspector& f, ListJobs&) {
  return f();
}
template <class Inspector>
auto inspect(Inspector& f, JobRecord& x) {
  return f(x.job, x.name, x.state, x.step, x.steps, x.loss, x.test_accuracy, x.message, x.sha256,
           x.code);
}
template <class Inspector>
auto inspect(Inspector& f, JobTable& x) {
  return f(x.jobs);
}

/// Adds these messages and the job events to an actor system's types.
void add_job_message_types(caf::actor_system_config& config);

}  // namespace troupe::train
