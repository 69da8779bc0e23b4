#include "runtime/graph/sender.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::graph {

bool OutputPort::OutEdge::goes_to_all() const {
  return pattern == Pattern::broadcast || pattern == Pattern::local;
}

bool OutputPort::OutEdge::ready() const {
  const auto has_room = [](const Consumer& c) { return c.window.available() > 0; };
  if (consumers.empty()) return false;
  return goes_to_all() ? std::all_of(consumers.begin(), consumers.end(), has_room)
                       : std::any_of(consumers.begin(), consumers.end(), has_room);
}

bool OutputPort::ready() const {
  return !finished_ && connected() &&
         std::all_of(edges_.begin(), edges_.end(), [](const OutEdge& e) { return e.ready(); });
}

std::size_t OutputPort::consumers() const {
  std::size_t count = 0;
  for (const auto& edge : edges_) count += edge.consumers.size();
  return count;
}

std::uint64_t OutputPort::in_flight() const {
  std::uint64_t count = 0;
  for (const auto& edge : edges_)
    for (const auto& consumer : edge.consumers) count += consumer.window.in_flight();
  return count;
}

void OutputPort::finish() {
  if (std::exchange(finished_, true)) return;
  for (const auto& edge : edges_)
    for (const auto& consumer : edge.consumers)
      self_->send(consumer.peer.actor, Finished{edge.number, edge.replica});
}

Status OutputPort::check_open() const {
  if (finished_)
    return {Code::failed_precondition,
            fmt::format("output '{}' is finished; send before finish()", name_)};
  if (!connected())
    return {Code::failed_precondition,
            fmt::format("output '{}' is not connected; ask connected() before sending", name_)};
  for (const auto& edge : edges_)
    if (edge.consumers.empty())
      return {Code::unavailable,
              fmt::format("output '{}' has no consumer left; its nodes are gone", name_)};
  return {};
}

void OutputPort::take(OutEdge& edge, Consumer& consumer, std::vector<Target>& targets) const {
  targets.push_back(
      {consumer.peer.actor, Delivery{edge.number, edge.replica, consumer.window.take()}});
}

Result<std::vector<OutputPort::Target>> OutputPort::claim() {
  if (auto status = check_open(); !status.ok()) return std::move(status).error();
  if (!ready())
    return {Code::resource_exhausted,
            fmt::format("output '{}' has no credit; send again when it is ready", name_)};
  std::vector<Target> targets;
  for (auto& edge : edges_) {
    if (edge.goes_to_all()) {
      for (auto& consumer : edge.consumers) take(edge, consumer, targets);
      continue;
    }
    while (edge.consumers[edge.next % edge.consumers.size()].window.available() == 0) ++edge.next;
    take(edge, edge.consumers[edge.next++ % edge.consumers.size()], targets);
  }
  return targets;
}

Result<std::vector<OutputPort::Target>> OutputPort::claim_for(std::uint32_t replica) {
  if (auto status = check_open(); !status.ok()) return std::move(status).error();
  std::vector<std::pair<OutEdge*, Consumer*>> found;
  for (auto& edge : edges_)
    for (auto& consumer : edge.consumers)
      if (consumer.peer.replica == replica) found.emplace_back(&edge, &consumer);
  if (found.empty())
    return {Code::not_found,
            fmt::format("output '{}' has no consumer replica {}; it may be lost", name_, replica)};
  for (const auto& [edge, consumer] : found)
    if (consumer->window.available() == 0)
      return {Code::resource_exhausted,
              fmt::format("output '{}' has no credit of consumer replica {}; send again when it "
                          "has consumed some",
                          name_, replica)};
  std::vector<Target> targets;
  for (const auto& [edge, consumer] : found) take(*edge, *consumer, targets);
  return targets;
}

OutputPort::OutEdge* OutputPort::find(std::uint32_t edge) {
  const auto found = std::find_if(edges_.begin(), edges_.end(),
                                  [&](const OutEdge& e) { return e.number == edge; });
  return found == edges_.end() ? nullptr : &*found;
}

void OutputPort::connect(const Connected& connected) {
  OutEdge edge{connected.edge, connected.pattern, connected.replica, {}};
  for (const auto& peer : connected.peers)
    edge.consumers.push_back({peer, CreditWindow(connected.capacity)});
  // Producers begin with different consumers, so that these share the load from the start.
  edge.next = connected.replica;
  edges_.push_back(std::move(edge));
}

Status OutputPort::credit(OutEdge& edge, const Credit& credit) {
  const bool was_ready = ready();
  for (auto& consumer : edge.consumers)
    if (consumer.peer.replica == credit.replica) {
      TROUPE_TRY(consumer.window.give_back(credit.count));
      break;
    }
  // From a consumer that is not there: it was lost after it had sent this.
  notify(was_ready);
  return {};
}

void OutputPort::drop(const caf::actor_addr& actor,
                      const std::function<void(std::uint32_t, std::uint32_t)>& lost) {
  const bool was_ready = ready();
  for (auto& edge : edges_)
    std::erase_if(edge.consumers, [&](const Consumer& consumer) {
      if (consumer.peer.actor.address() != actor) return false;
      lost(consumer.peer.replica, consumer.window.in_flight());
      return true;
    });
  notify(was_ready);
}

void OutputPort::notify(bool was_ready) {
  if (!was_ready && ready() && on_ready_) on_ready_();
}

}  // namespace troupe::graph
