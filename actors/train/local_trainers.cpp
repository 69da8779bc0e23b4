#include "actors/train/local_trainers.hpp"

#include <memory>

#include <caf/duration.hpp>
#include <caf/error.hpp>

namespace troupe::train {

void LocalTrainers::answered() {
  if (busy_ > 0) --busy_;
  if (busy_ == 0 && halted_.pending()) release();
}

caf::result<Halted> LocalTrainers::halt(std::uint64_t steps_done) {
  halted_ = self_->make_response_promise<Halted>();
  steps_done_ = steps_done;
  const caf::result<Halted> answer = halted_;
  if (busy_ == 0) release();
  return answer;
}

void LocalTrainers::release() {
  struct Round {
    std::size_t open;
    std::uint64_t steps_done;
    caf::typed_response_promise<Halted> halted;
  };
  const auto round =
      std::make_shared<Round>(Round{trainers_.size() + 1, steps_done_, std::exchange(halted_, {})});
  const auto released = [round] {
    if (--round->open == 0) round->halted.deliver(Halted{round->steps_done});
  };
  for (const auto& trainer : trainers_)
    self_->request(trainer, caf::infinite, Release{})
        .then([released](Released) { released(); },
              [released](const caf::error&) { released(); });  // its end gave all back
  released();
}

}  // namespace troupe::train
