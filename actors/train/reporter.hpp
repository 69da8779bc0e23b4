#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>

#include "actors/train/events.hpp"
#include "actors/train/messages.hpp"

namespace troupe::train {

/// What a reducer tells its job. Keeps of it what a head that takes over later has to know.
///
/// Ownership: borrows the actor. Threads: that actor only.
class Reporter {
public:
  Reporter(caf::event_based_actor* self, caf::actor job) : self_(self), job_(std::move(job)) {}

  /// The message that is handled now comes from the job, and not from one that it was under a head
  /// before.
  bool is_from_job() const;

  void step(const StepFinished& x);
  void evaluated(const Evaluated& x);  ///< of the last epoch
  void last_step(const LastStepDone& x);
  /// Those from epoch `first` on.
  void epochs(const std::vector<EpochFinished>& all, std::uint64_t first);
  /// What is told once and kept by nobody.
  template <class Message>
  void say(Message message) {
    self_->send(job_, std::move(message));
  }

  /// Another actor is the job now: tells it what it has missed.
  void adopted(const Adopt& x, const std::vector<EpochFinished>& epochs, bool first_reducer);

private:
  caf::event_based_actor* self_;
  caf::actor job_;
  std::uint64_t term_ = 0;          ///< of the head that adopted
  std::deque<StepFinished> steps_;  ///< the latest
  std::vector<Evaluated> evaluated_;
  std::optional<LastStepDone> last_step_;
};

}  // namespace troupe::train
