#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "actors/config/job_config.hpp"
#include "actors/job/job_runner.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/cluster/runtime.hpp"

namespace troupe::train {

struct QueuedJob {
  std::uint64_t job = 0;
  JobConfig config;
  std::uint32_t nodes = 0;
  bool resume = false;
  std::optional<Inherited> inherited;  ///< another head may have begun it
};

/// Runs queued jobs one after the other on a thread of its own.
///
/// Threads: any; the destructor waits for the running job, which it cancels.
class JobQueue {
public:
  /// Makes who hears what a job says.
  using MakeObserver = std::function<std::unique_ptr<JobObserver>(std::uint64_t job)>;

  explicit JobQueue(Runtime& runtime) : runtime_(runtime) {}
  ~JobQueue() { stop(); }

  void start(MakeObserver make_observer);
  void push(QueuedJob job);
  /// Takes a waiting job out; true if it was waiting. One that runs is told to end.
  bool cancel(std::uint64_t job);
  void stop();

private:
  std::optional<QueuedJob> next();
  void work(const MakeObserver& make_observer);

  Runtime& runtime_;
  std::thread thread_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<QueuedJob> waiting_ TROUPE_GUARDED_BY(mutex_);
  JobRunner* running_ TROUPE_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t running_job_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool stopping_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::train
