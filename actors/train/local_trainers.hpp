#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/train/messages.hpp"

namespace troupe::train {

/// A reducer's trainers, those of its node: who is at work, and how they come to rest.
///
/// Ownership: borrows the actor, which must live as long as requests of it are open.
/// Threads:   that actor only.
class LocalTrainers {
public:
  explicit LocalTrainers(caf::event_based_actor* self) : self_(self) {}

  void connect(std::vector<caf::actor> trainers) { trainers_ = std::move(trainers); }
  std::size_t count() const noexcept { return trainers_.size(); }

  /// To each of them; each owes one answer, of which answered() is to be told.
  template <class Message>
  void ask(const Message& message) {
    busy_ += trainers_.size();
    for (const auto& trainer : trainers_) self_->send(trainer, message);
  }
  /// One does not read the weights until it is asked again.
  void answered();

  /// For a behavior's handler, in which it must be called: the answer comes when all have answered,
  /// and given the memory of their passes back. `steps_done` stays as it is by then.
  caf::result<Halted> halt(std::uint64_t steps_done);

private:
  void release();

  caf::event_based_actor* self_;
  std::vector<caf::actor> trainers_;
  std::size_t busy_ = 0;  ///< answers that are owed
  caf::typed_response_promise<Halted> halted_;
  std::uint64_t steps_done_ = 0;
};

}  // namespace troupe::train
