#pragma once

#include <cstdint>
#include <memory>

#include <caf/actor.hpp>

#include "actors/job/messages.hpp"
#include "runtime/cluster/runtime.hpp"

namespace troupe::train {

/// The name under which a head's job service is found by other nodes.
inline constexpr const char* kJobServiceName = "troupe.jobs";

/// Takes jobs on the head, runs one at a time in the order of submission, and tells who watches.
/// With a control store it goes on with the jobs of the head before.
///
/// Ownership: borrows the runtime, which outlives it. The destructor cancels what runs and waits.
/// Threads:   any.
class JobService {
public:
  /// Errors: those of Runtime::register_name and of the store.
  static Result<std::unique_ptr<JobService>> start(Runtime& runtime);
  ~JobService();
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;

  /// The actor that answers the messages above.
  const caf::actor& actor() const;

private:
  struct State;
  explicit JobService(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::train
