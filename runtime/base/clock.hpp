#pragma once

#include <chrono>

namespace troupe {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Where time comes from. Everything that waits or measures takes one, so that tests can turn it.
/// Threads: any.
class Clock {
public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

/// The machine's monotonic clock.
class SteadyClock final : public Clock {
public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

/// Stands still until it is moved. Threads: one.
class ManualClock final : public Clock {
public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

private:
  TimePoint now_{};
};

}  // namespace troupe
