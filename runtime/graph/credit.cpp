#include "runtime/graph/credit.hpp"

#include <utility>

#include <fmt/format.h>

#include "runtime/base/check.hpp"

namespace troupe::graph {

CreditWindow::CreditWindow(std::uint32_t capacity) : capacity_(capacity) {
  TROUPE_CHECK(capacity > 0, "an edge with capacity 0");
}

std::uint64_t CreditWindow::take() {
  TROUPE_CHECK(available() > 0, "sending without credit");
  ++in_flight_;
  return next_++;
}

Status CreditWindow::give_back(std::uint32_t count) {
  if (count > in_flight_)
    return {Code::protocol_error,
            fmt::format("the consumer returned {} credits while {} values were in flight", count,
                        in_flight_)};
  in_flight_ -= count;
  return {};
}

CreditReturn::CreditReturn(std::uint32_t capacity)
    : capacity_(capacity), batch_(capacity / 2 + capacity % 2) {
  TROUPE_CHECK(capacity > 0, "an edge with capacity 0");
}

Status CreditReturn::arrived(std::uint64_t sequence) {
  if (sequence != next_)
    return {Code::protocol_error,
            fmt::format("value {} arrived where value {} was due", sequence, next_)};
  if (held_ + owed_ == capacity_)
    return {Code::protocol_error,
            fmt::format("value {} arrived without credit: the edge's capacity is {}", sequence,
                        capacity_)};
  ++next_;
  ++held_;
  return {};
}

std::uint32_t CreditReturn::consumed() {
  TROUPE_CHECK(held_ > 0, "consuming more values than have arrived");
  --held_;
  if (++owed_ < batch_) return 0;
  return std::exchange(owed_, 0);
}

}  // namespace troupe::graph
