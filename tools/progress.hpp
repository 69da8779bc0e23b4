#pragma once

#include <cstdio>
#include <string>

#include "actors/train/events.hpp"
#include "runtime/base/clock.hpp"

namespace troupe::tool {

/// Shows a job's progress: one redrawn line on a terminal, plain lines otherwise.
///
/// Threads: the observer's; one call at a time.
class Progress final : public train::JobObserver {
public:
  struct Options {
    std::FILE* out = stdout;
    bool terminal = false;         ///< redraw one line
    std::uint64_t log_every = 50;  ///< steps between plain lines
  };

  Progress(Options options, const Clock& clock) : options_(options), clock_(clock) {}

  void on_started(const train::JobStarted& started) override;
  void on_step(const train::StepFinished& step) override;
  void on_epoch(const train::EpochFinished& epoch) override;
  void on_checkpoint(const train::CheckpointWritten& checkpoint) override;
  void on_notice(const train::Notice& notice) override;
  void on_ended(const train::JobEnded& ended) override;

  /// True once on_ended said that the job finished.
  bool finished() const { return finished_; }

private:
  /// Prints a line of its own, above the bar if there is one.
  void line(const std::string& text);
  void draw(const std::string& text);
  std::string position(const train::StepFinished& step) const;
  /// Since the first step of this run.
  double samples_per_second(std::uint64_t steps_done) const;

  const Options options_;
  const Clock& clock_;
  train::JobStarted job_;
  TimePoint started_at_{};
  TimePoint drawn_at_{};
  bool bar_shown_ = false;
  bool finished_ = false;
};

/// "1h02m", "3m20s", "12s".
std::string duration_text(double seconds);

}  // namespace troupe::tool
