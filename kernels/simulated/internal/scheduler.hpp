#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::simulated {

/// Runs what the streams of a device hold: each in order, and the next one of a stream that the
/// seed says. On the thread that waits; there is no other.
///
/// Threads: any. Work runs one piece at a time.
class Scheduler {
public:
  using Work = std::function<Status()>;
  using Queue = std::size_t;

  /// A moment in a queue: how many pieces of work come before it.
  struct Mark {
    Queue queue = 0;
    std::uint64_t count = 0;
  };

  explicit Scheduler(std::uint32_t seed) : seed_(seed), random_(seed) {}

  Queue add_queue();
  /// Runs what is in it first.
  void remove_queue(Queue queue);
  void enqueue(Queue queue, Work work);
  /// What comes later in `queue` waits for the mark.
  void enqueue_wait(Queue queue, Mark mark);
  Mark mark(Queue queue) const;
  /// Runs work until the mark is passed. Error: the first of any work so far.
  Status run_until(Mark mark);

private:
  struct Piece {
    Work work;   ///< or, if null,
    Mark until;  ///< what is waited for
  };
  struct State {
    std::deque<Piece> pieces;
    std::uint64_t done = 0;
  };

  bool passed(Mark mark) const TROUPE_REQUIRES(mutex_) {
    return queues_[mark.queue].done >= mark.count;
  }
  /// Runs the next piece of some queue; false if all are empty, or wait.
  bool run_one() TROUPE_REQUIRES(mutex_);
  void run_early() TROUPE_REQUIRES(mutex_);

  const std::uint32_t seed_;
  mutable Mutex mutex_;
  std::mt19937_64 random_ TROUPE_GUARDED_BY(mutex_);
  std::vector<State> queues_ TROUPE_GUARDED_BY(mutex_);
  std::vector<Queue> unused_ TROUPE_GUARDED_BY(mutex_);
  Status failed_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::kernels::simulated
