#include "runtime/graph/receiver.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::graph {

std::size_t InputPort::producers() const {
  std::size_t count = 0;
  for (const auto& edge : edges_)
    for (const auto& producer : edge.producers) count += producer.finished ? 0 : 1;
  return count;
}

InputPort::Producer* InputPort::find(const Origin& origin, InEdge** found_edge) {
  for (auto& edge : edges_) {
    if (edge.number != origin.edge) continue;
    for (auto& producer : edge.producers)
      if (producer.peer.replica == origin.replica) {
        if (found_edge != nullptr) *found_edge = &edge;
        return &producer;
      }
  }
  return nullptr;
}

bool InputPort::has(std::uint32_t edge) const {
  return std::any_of(edges_.begin(), edges_.end(),
                     [&](const InEdge& e) { return e.number == edge; });
}

void InputPort::connect(const Connected& connected) {
  InEdge edge{connected.edge, connected.replica, {}};
  for (const auto& peer : connected.peers)
    edge.producers.push_back({peer, CreditReturn(connected.capacity)});
  edges_.push_back(std::move(edge));
}

Status InputPort::arrived(const Delivery& delivery) {
  Producer* producer = find({delivery.edge, delivery.replica});
  if (producer == nullptr || producer->finished)
    return {Code::protocol_error,
            fmt::format("replica {}, which is no producer of input '{}', sent it a value",
                        delivery.replica, name_)};
  return producer->credit.arrived(delivery.sequence);
}

void InputPort::handled(const Origin& origin) {
  if (consume_ == Consume::on_return) consumed(origin);
}

void InputPort::consumed(const Origin& origin) {
  InEdge* edge = nullptr;
  Producer* producer = find(origin, &edge);
  if (producer == nullptr) return;
  const std::uint32_t count = producer->credit.consumed();
  if (count > 0) self_->send(producer->peer.actor, Credit{edge->number, edge->replica, count});
}

void InputPort::finished(const Finished& finished) {
  const bool had_producers = producers() > 0;
  if (Producer* producer = find({finished.edge, finished.replica})) producer->finished = true;
  notify(had_producers);
}

void InputPort::drop(const caf::actor_addr& actor, const std::function<void(std::uint32_t)>& lost) {
  const bool had_producers = producers() > 0;
  for (auto& edge : edges_)
    std::erase_if(edge.producers, [&](const Producer& producer) {
      if (producer.peer.actor.address() != actor) return false;
      if (!producer.finished) lost(producer.peer.replica);
      return true;
    });
  notify(had_producers);
}

void InputPort::notify(bool had_producers) {
  if (had_producers && producers() == 0 && on_finished_) on_finished_();
}

}  // namespace troupe::graph
