#pragma once

#include <cstdio>

#include "actors/train/events.hpp"
#include "runtime/base/clock.hpp"

namespace troupe::tool {

/// A job's events as JSON, one object a line, for programs: {"event": "step", "seconds": ..., ...}.
/// "seconds" counts from the start of the object.
///
/// Threads: the observer's; one call at a time.
class JsonLines final : public train::JobObserver {
public:
  JsonLines(std::FILE* out, const Clock& clock)
      : out_(out), clock_(clock), started_at_(clock.now()) {}

  void on_started(const train::JobStarted& started) override;
  void on_step(const train::StepFinished& step) override;
  void on_epoch(const train::EpochFinished& epoch) override;
  void on_generation(const train::GenerationBegun& generation) override;
  void on_checkpoint(const train::CheckpointWritten& checkpoint) override;
  void on_notice(const train::Notice& notice) override;
  void on_ended(const train::JobEnded& ended) override;

private:
  double seconds() const;

  std::FILE* out_;
  const Clock& clock_;
  const TimePoint started_at_;
};

}  // namespace troupe::tool
