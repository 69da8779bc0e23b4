#pragma once

#include <cstdint>

#include "runtime/base/status.hpp"

namespace troupe::graph {

// Credit-based flow control between one producer and one consumer, without actors: the counting
// only. A producer may send while it has credit; the consumer gives credit back for what it has
// consumed. Threads: owner only.

/// The producer's count.
///
/// Invariant: in_flight() never exceeds the capacity.
class CreditWindow {
public:
  /// `capacity` is at least 1.
  explicit CreditWindow(std::uint32_t capacity);

  std::uint32_t available() const { return capacity_ - in_flight_; }
  /// Sent, and not known to be consumed.
  std::uint32_t in_flight() const { return in_flight_; }

  /// Uses one credit, of which there must be one, and returns the value's sequence number.
  std::uint64_t take();

  /// Errors: `protocol_error` if fewer are in flight; changes nothing then.
  Status give_back(std::uint32_t count);

private:
  std::uint32_t capacity_;
  std::uint32_t in_flight_ = 0;
  std::uint64_t next_ = 0;
};

/// The consumer's count. Credit goes back in batches of half the capacity: one message for many
/// values, while the producer always has some left.
class CreditReturn {
public:
  explicit CreditReturn(std::uint32_t capacity);

  /// A value has come. Errors: `protocol_error` if it is not the next, or beyond the credit that
  /// the producer has; changes nothing then.
  Status arrived(std::uint64_t sequence);

  /// A value that had arrived is consumed. Returns how many credits go back now; often 0.
  std::uint32_t consumed();

  /// Arrived and not consumed.
  std::uint32_t held() const { return held_; }

private:
  std::uint32_t capacity_;
  std::uint32_t batch_;
  std::uint32_t held_ = 0;
  std::uint32_t owed_ = 0;  ///< consumed, credit not yet returned
  std::uint64_t next_ = 0;
};

}  // namespace troupe::graph
