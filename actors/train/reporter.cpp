#include "actors/train/reporter.hpp"

#include <caf/actor_cast.hpp>

namespace troupe::train {
namespace {

/// Steps that are kept for a head that comes later; of more it hears only how far the job is.
constexpr std::size_t kMostSteps = 10'000;

}  // namespace

bool Reporter::is_from_job() const {
  return self_->current_sender() == caf::actor_cast<caf::strong_actor_ptr>(job_);
}

void Reporter::step(const StepFinished& x) {
  steps_.push_back(x);
  if (steps_.size() > kMostSteps) steps_.pop_front();
  say(x);
}

void Reporter::evaluated(const Evaluated& x) {
  evaluated_.push_back(x);
  say(x);
}

void Reporter::last_step(const LastStepDone& x) {
  last_step_ = x;
  say(x);
}

void Reporter::epochs(const std::vector<EpochFinished>& all, std::uint64_t first) {
  for (const auto& epoch : all)
    if (epoch.epoch >= first) say(epoch);
}

void Reporter::adopted(const Adopt& x, const std::vector<EpochFinished>& all, bool first_reducer) {
  if (x.term < term_) return;
  term_ = x.term;
  job_ = x.job_actor;
  self_->monitor(job_);
  for (const auto& step : steps_)
    if (step.step >= x.steps) say(step);
  if (first_reducer) epochs(all, x.epochs);
  for (const auto& part : evaluated_) say(part);
  if (last_step_) say(*last_step_);
}

}  // namespace troupe::train
