#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "actors/train/events.hpp"
#include "runtime/base/mutex.hpp"

namespace troupe::tool {

/// When what happened to a job, for a thread that disturbs it. Threads: any.
class ChaosTimeline final : public train::JobObserver {
public:
  using Clock = std::chrono::steady_clock;

  /// What followed begin_event(); empty for what did not.
  struct Times {
    std::optional<Clock::time_point> noticed;     ///< the cluster has a view with the change
    std::optional<Clock::time_point> goes_on;     ///< the job has a new generation
    std::optional<Clock::time_point> first_step;  ///< done by it
    std::optional<train::GenerationBegun> generation;
  };

  void on_started(const train::JobStarted& x) override;
  void on_step(const train::StepFinished& x) override;
  void on_generation(const train::GenerationBegun& x) override;
  void on_ended(const train::JobEnded&) override;
  void on_view();

  /// Until the job has done its share before event `event` of `events`. False if it ended first.
  bool wait_for_progress(std::size_t event, std::size_t events);
  /// `expects_generation`: the job's nodes change; else the next step is all there is to wait for.
  void begin_event(bool expects_generation);
  Times wait_for_recovery(Clock::duration patience);

private:
  Mutex mutex_;
  CondVar changed_;
  std::uint64_t total_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t steps_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool waiting_ TROUPE_GUARDED_BY(mutex_) = false;
  bool expects_generation_ TROUPE_GUARDED_BY(mutex_) = false;
  bool ended_ TROUPE_GUARDED_BY(mutex_) = false;
  Times times_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::tool
