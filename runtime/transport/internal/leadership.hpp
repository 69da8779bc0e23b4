#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace troupe::transport {

/// Which of two threads makes progress. The leader may run foreign work; if that takes too long,
/// the other thread takes the lead, and the first finds out when the work ends.
///
/// One word says it all: who leads, whether it runs foreign work, and which run that is. So the
/// lead moves by one compare-and-swap, and never has two holders.
///
/// Threads: each method says. What the leader did before begin_run() or handing over is visible to
///          the next leader.
class Leadership {
public:
  using Term = std::uint64_t;

  /// Once per thread, before anything else. `index` is 0 or 1; 0 leads first.
  void enroll(int index) {
    threads_[static_cast<std::size_t>(index)].store(std::this_thread::get_id());
  }

  int leader() const noexcept { return static_cast<int>(word_.load() & kLeader); }

  /// Any thread: is it me who leads?
  bool is_mine() const noexcept {
    return threads_[word_.load(std::memory_order_acquire) & kLeader].load(
               std::memory_order_relaxed) == std::this_thread::get_id();
  }

  /// Leader: foreign work begins.
  Term begin_run() noexcept {
    const Term term = (word_.load(std::memory_order_relaxed) & kLeader) | kRunning | next_run();
    word_.store(term);  // in one order with the stand-in's "I sleep"
    return term;
  }
  /// Who began: the work ended. False if the lead was taken meanwhile.
  bool end_run(Term term) noexcept {
    return word_.compare_exchange_strong(term, term & ~kRunning, std::memory_order_acq_rel);
  }

  /// The other thread: what the leader is at.
  Term observe() const noexcept { return word_.load(); }
  static bool running(Term term) noexcept { return (term & kRunning) != 0; }
  /// The other thread: takes the lead if the leader is still in the run it observed.
  bool take_over(Term term) noexcept {
    return running(term) && word_.compare_exchange_strong(term, (term ^ kLeader) & ~kRunning,
                                                          std::memory_order_acq_rel);
  }

private:
  static constexpr Term kLeader = 1, kRunning = 2, kRunStep = 4;
  Term next_run() noexcept { return run_ += kRunStep; }

  std::atomic<Term> word_{0};
  Term run_ = 0;  ///< the leader's
  std::array<std::atomic<std::thread::id>, 2> threads_{};
};

}  // namespace troupe::transport
