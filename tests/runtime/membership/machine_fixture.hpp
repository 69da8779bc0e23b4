#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "runtime/membership/machine.hpp"

namespace troupe::membership {

using namespace std::chrono_literals;

inline constexpr Timing kTiming{100ms, 1s, {}};

inline NodeId node_id(std::uint64_t number) {
  return {1, number};
}

inline Member member(std::uint64_t number, std::string name = "node") {
  Member m;
  m.node = node_id(number);
  m.name = std::move(name);
  m.address = {"127.0.0.1", static_cast<std::uint16_t>(4000 + number)};
  m.liveness = {"127.0.0.1", static_cast<std::uint16_t>(5000 + number)};
  m.host = "host";
  m.slots = 1;
  return m;
}

/// The connection of node `number`, as tests number them.
inline Link actors_link(std::uint64_t number) {
  return {Plane::actors, number};
}
inline Link liveness_link(std::uint64_t number) {
  return {Plane::liveness, number};
}

/// All actions of one kind, in order.
template <class T>
std::vector<T> only(const std::vector<Action>& actions) {
  std::vector<T> result;
  for (const auto& action : actions)
    if (const auto* a = std::get_if<T>(&action)) result.push_back(*a);
  return result;
}

/// All messages of one kind that were sent over `link`.
template <class M>
std::vector<M> sent(const std::vector<Action>& actions, Link link) {
  std::vector<M> result;
  for (const auto& send : only<Send>(actions))
    if (const auto* m = std::get_if<M>(&send.message); m != nullptr && send.link == link)
      result.push_back(*m);
  return result;
}

inline bool closes(const std::vector<Action>& actions, Link link) {
  for (const auto& close : only<Close>(actions))
    if (close.link == link) return true;
  return false;
}

}  // namespace troupe::membership
