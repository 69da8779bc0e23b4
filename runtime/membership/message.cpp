#include "runtime/membership/message.hpp"

#include <array>

#include <fmt/format.h>

namespace troupe::membership {

Status Timing::validate() const {
  using std::chrono::duration;
  constexpr Duration kMostHeadless = std::chrono::hours(24 * 7);
  if (headless < Duration::zero() || headless > kMostHeadless)
    return {Code::invalid_argument, fmt::format("{} s without a head; 0 to {} s (a week)",
                                                duration<double>(headless).count(),
                                                duration<double>(kMostHeadless).count())};
  if (period >= std::chrono::milliseconds(1) && period <= std::chrono::hours(1) &&
      3 * period <= limit && limit <= std::chrono::hours(1))
    return {};
  const auto seconds = [](Duration d) { return duration<double>(d).count(); };
  return {Code::invalid_argument,
          fmt::format("a heartbeat period of {} s with a limit of {} s; the period must be 0.001 s "
                      "or more, the limit three periods or more and an hour at most",
                      seconds(period), seconds(limit))};
}

std::string_view name_of(const Message& message) {
  constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames = {
      "join",   "welcome",  "mesh",      "joined",     "refused", "view",
      "leave",  "released", "heartbeat", "suspect",    "fenced",  "ended",
      "forget", "takeover", "followed",  "superseded", "drain",   "amended"};
  return kNames[message.index()];
}

}  // namespace troupe::membership
