#include "tools/chaos_timeline.hpp"

namespace troupe::tool {

void ChaosTimeline::on_started(const train::JobStarted& x) {
  MutexLock lock(mutex_);
  total_ = x.epochs * x.steps_per_epoch;
  changed_.notify_all();
}

void ChaosTimeline::on_step(const train::StepFinished& x) {
  MutexLock lock(mutex_);
  steps_ = std::max(steps_, x.step + 1);
  if (waiting_ && !times_.first_step &&
      (expects_generation_ ? times_.generation.has_value() : times_.noticed.has_value()))
    times_.first_step = Clock::now();
  changed_.notify_all();
}

void ChaosTimeline::on_generation(const train::GenerationBegun& x) {
  MutexLock lock(mutex_);
  times_.generation = x;
  times_.goes_on = Clock::now();
  times_.first_step.reset();
}

void ChaosTimeline::on_ended(const train::JobEnded&) {
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void ChaosTimeline::on_view() {
  MutexLock lock(mutex_);
  if (waiting_ && !times_.noticed) times_.noticed = Clock::now();
}

bool ChaosTimeline::wait_for_progress(std::size_t event, std::size_t events) {
  MutexLock lock(mutex_);
  while (!ended_ && (total_ == 0 || steps_ * (events + 1) < total_ * (event + 1)))
    changed_.wait(mutex_);
  return !ended_;
}

void ChaosTimeline::begin_event(bool expects_generation) {
  MutexLock lock(mutex_);
  times_ = {};
  waiting_ = true;
  expects_generation_ = expects_generation;
}

ChaosTimeline::Times ChaosTimeline::wait_for_recovery(Clock::duration patience) {
  const auto until = Clock::now() + patience;
  MutexLock lock(mutex_);
  while (!ended_ && !times_.first_step)
    if (changed_.wait_until(mutex_, until) == std::cv_status::timeout) break;
  waiting_ = false;
  return times_;
}

}  // namespace troupe::tool
