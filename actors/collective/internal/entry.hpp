#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "runtime/base/check.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::collective::internal {

/// Marks that a call is inside the machine. A second one is a call back from an effect, which would
/// find the machine between two states.
class Entry {
public:
  explicit Entry(bool& entered) : entered_(entered) {
    TROUPE_CHECK(!entered_, "an effect of the reduction machine called it back");
    entered_ = true;
  }
  ~Entry() { entered_ = false; }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

private:
  bool& entered_;
};

/// Errors: `shape_mismatch` unless `buffer` holds `elements` f32 that the host can add up.
/// `what()` names it.
template <class What>
Status check_floats(const Buffer& buffer, std::uint64_t elements, What what) {
  if (buffer.size() != elements * sizeof(float))
    return {Code::shape_mismatch, fmt::format("{} has {} bytes where the plan says {}", what(),
                                              buffer.size(), elements * sizeof(float))};
  if (on_device(buffer.kind()))
    return {Code::shape_mismatch,
            fmt::format("{} lies on a device; copy it to the host first", what())};
  if (reinterpret_cast<std::uintptr_t>(buffer.data()) % alignof(float) != 0)
    return {Code::shape_mismatch,
            fmt::format("{} does not begin at a multiple of {} bytes", what(), alignof(float))};
  return {};
}

}  // namespace troupe::collective::internal
