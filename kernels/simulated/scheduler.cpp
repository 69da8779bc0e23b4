#include "kernels/simulated/internal/scheduler.hpp"

#include <utility>

#include "runtime/base/check.hpp"

namespace troupe::kernels::simulated {

Scheduler::Queue Scheduler::add_queue() {
  MutexLock lock(mutex_);
  if (!unused_.empty()) {
    const Queue queue = unused_.back();
    unused_.pop_back();
    return queue;
  }
  queues_.emplace_back();
  return queues_.size() - 1;
}

void Scheduler::remove_queue(Queue queue) {
  (void)run_until(mark(queue));
  MutexLock lock(mutex_);
  unused_.push_back(queue);
}

void Scheduler::enqueue(Queue queue, Work work) {
  MutexLock lock(mutex_);
  queues_[queue].pieces.push_back({std::move(work), {}});
  run_early();
}

void Scheduler::enqueue_wait(Queue queue, Mark mark) {
  MutexLock lock(mutex_);
  queues_[queue].pieces.push_back({nullptr, mark});
  run_early();
}

Scheduler::Mark Scheduler::mark(Queue queue) const {
  MutexLock lock(mutex_);
  const State& state = queues_[queue];
  return {queue, state.done + state.pieces.size()};
}

Status Scheduler::run_until(Mark mark) {
  MutexLock lock(mutex_);
  while (!passed(mark))
    TROUPE_CHECK(run_one(), "the streams of a simulated device wait for each other");
  return failed_;
}

bool Scheduler::run_one() {
  std::vector<Queue> ready;
  for (Queue queue = 0; queue < queues_.size(); ++queue) {
    const auto& pieces = queues_[queue].pieces;
    if (!pieces.empty() && (pieces.front().work != nullptr || passed(pieces.front().until)))
      ready.push_back(queue);
  }
  if (ready.empty()) return false;
  State& state = queues_[ready[random_() % ready.size()]];
  Piece piece = std::move(state.pieces.front());
  state.pieces.pop_front();
  // As a device that has failed does no more.
  if (piece.work != nullptr && failed_.ok()) failed_ = piece.work();
  ++state.done;
  return true;
}

void Scheduler::run_early() {
  if (seed_ == 0) return;
  // None, mostly; now and then many at once.
  for (std::uint64_t left = random_() % 4 == 0 ? random_() % 8 : 0; left > 0; --left)
    if (!run_one()) return;
}

}  // namespace troupe::kernels::simulated
