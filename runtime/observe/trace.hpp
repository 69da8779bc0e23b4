#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/clock.hpp"
#include "runtime/base/status.hpp"

namespace troupe {

/// What a span is called: a literal, so that recording copies a pointer.
struct TraceName {
  consteval TraceName(const char* literal) : text(literal) {}  // NOLINT: implicit by design
  const char* text;
};

/// Records what ran when on which thread, for chrome://tracing or Perfetto. Each thread writes
/// into a ring of its own, the newest events win.
///
///     TraceSpan span(trace, "reduce", bucket);   // until the end of the scope
///
/// Off unless started, and then costs one relaxed load for each span.
///
/// Ownership: borrows the clock. Threads may end before or after it.
/// Threads:   any.
class Trace {
public:
  struct Options {
    std::string process = "node";           ///< for people
    std::uint32_t process_number = 0;       ///< tells nodes apart when their files are merged
    std::size_t events_per_thread = 65536;  ///< 40 bytes each, taken when a thread first records
    std::size_t max_threads = 1024;         ///< what more threads do is not recorded
  };

  Trace(Options options, const Clock& clock);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  /// Forgets what was recorded before.
  void start();
  void stop() noexcept { on_.store(false, std::memory_order_relaxed); }

  /// What was recorded, as JSON ("Trace Event Format", complete events; times in microseconds).
  std::string json() const;
  /// Stops and writes json() to a file. Error: `io_error` with the path.
  Status write(const std::string& path);

private:
  friend class TraceSpan;
  struct State;
  struct Ring;

  TimePoint now() const { return clock_.now(); }
  void record(TraceName name, TimePoint begin, TimePoint end, std::uint64_t argument);
  Ring* ring_of_this_thread();

  const Clock& clock_;
  std::atomic<bool> on_{false};
  std::shared_ptr<State> state_;
};

/// One event from its construction to its destruction. Not recorded if the trace was off at either.
class TraceSpan {
public:
  TraceSpan(Trace& trace, TraceName name, std::uint64_t argument = 0)
      : trace_(trace.on() ? &trace : nullptr), name_(name), argument_(argument) {
    if (trace_ != nullptr) begin_ = trace_->now();
  }
  ~TraceSpan() {
    if (trace_ != nullptr && trace_->on()) trace_->record(name_, begin_, trace_->now(), argument_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

private:
  Trace* trace_;
  TraceName name_;
  std::uint64_t argument_;
  TimePoint begin_{};
};

}  // namespace troupe
