#include "runtime/graph/ports.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/remoting/caf_error.hpp"

namespace troupe::graph {
namespace {

template <class Port>
Port* find_by_name(const std::vector<std::unique_ptr<Port>>& ports, const std::string& name) {
  const auto found = std::find_if(ports.begin(), ports.end(),
                                  [&](const auto& port) { return port->name() == name; });
  return found == ports.end() ? nullptr : found->get();
}

}  // namespace

Ports::Ports(caf::event_based_actor* self) : self_(self) {
  self->set_down_handler([this](const caf::down_msg& message) { down(message); });
}

OutputPort* Ports::find_output(const std::string& name) const {
  return find_by_name(outputs_, name);
}
InputPort* Ports::find_input(const std::string& name) const {
  return find_by_name(inputs_, name);
}

void Ports::add_handler(std::type_index type, const caf::message_handler& handler) {
  if (types_.insert(type).second) deliveries_ = deliveries_.or_else(handler);
}

caf::message_handler Ports::handlers() {
  return control_handlers().or_else(deliveries_);
}

caf::message_handler Ports::control_handlers() {
  return {[this](const Connected& connected) { return connect(connected); },
          [this](const Start&) {
            if (on_start_) on_start_();
          },
          [this](const Credit& message) { credit(message); },
          [this](const Finished& message) { finished(message); }};
}

caf::result<void> Ports::connect(const Connected& connected) {
  const auto refuse = [](Code code, std::string why) {
    return remoting::to_caf(Error{code, std::move(why)});
  };
  OutputPort* output = connected.output ? find_output(connected.port) : nullptr;
  InputPort* input = connected.output ? nullptr : find_input(connected.port);
  if (output == nullptr && input == nullptr)
    return refuse(Code::not_found,
                  fmt::format("the actor has no {} '{}'", connected.output ? "output" : "input",
                              connected.port));
  if (connected.capacity == 0)
    return refuse(Code::invalid_argument,
                  fmt::format("port '{}' would be connected with capacity 0", connected.port));
  if (output != nullptr ? output->find(connected.edge) != nullptr : input->has(connected.edge))
    return refuse(Code::already_exists, fmt::format("port '{}' is connected to edge {} already",
                                                    connected.port, connected.edge));
  if (std::any_of(connected.peers.begin(), connected.peers.end(),
                  [](const Peer& peer) { return peer.actor == nullptr; }))
    return refuse(
        Code::invalid_argument,
        fmt::format("port '{}' would be connected to an actor that is gone", connected.port));
  if (output != nullptr) output->connect(connected);
  if (input != nullptr) input->connect(connected);
  for (const auto& peer : connected.peers)
    if (watched_.insert(peer.actor.address()).second) self_->monitor(peer.actor);
  return caf::unit;
}

InputPort* Ports::accept(const Delivery& delivery, std::type_index type) {
  for (auto& input : inputs_) {
    if (!input->has(delivery.edge)) continue;
    const Origin from{delivery.edge, delivery.replica};
    // What a producer had sent before it was lost may still come; its credit is nobody's.
    const auto* producer = input->find(from);
    if (producer == nullptr) return nullptr;
    Status status = input->arrived(delivery);
    if (status.ok() && input->type_ != type)
      status = {Code::protocol_error, "the value is of another type"};
    if (status.ok()) return input.get();
    fail(input->name(), status.error());
    return nullptr;
  }
  fail("?", {Code::protocol_error,
             fmt::format("a value came along edge {}, which is not connected", delivery.edge)});
  return nullptr;
}

void Ports::credit(const Credit& message) {
  for (auto& output : outputs_) {
    auto* edge = output->find(message.edge);
    if (edge == nullptr) continue;
    if (auto status = output->credit(*edge, message); !status.ok())
      fail(output->name(), status.error());
    return;
  }
  fail("?", {Code::protocol_error,
             fmt::format("credit came for edge {}, which is not connected", message.edge)});
}

void Ports::finished(const Finished& message) {
  for (auto& input : inputs_)
    if (input->has(message.edge)) input->finished(message);
}

void Ports::down(const caf::down_msg& message) {
  if (watched_.erase(message.source) == 0) {
    if (on_other_down_) on_other_down_(message);
    return;
  }
  std::vector<PeerLost> lost;
  for (auto& output : outputs_)
    output->drop(message.source, [&](std::uint32_t replica, std::uint32_t in_flight) {
      if (!output->finished_)
        lost.push_back({output->name(), true, replica, in_flight, message.reason});
    });
  for (auto& input : inputs_)
    input->drop(message.source, [&](std::uint32_t replica) {
      lost.push_back({input->name(), false, replica, 0, message.reason});
    });
  if (on_lost_)
    for (const auto& peer : lost) on_lost_(peer);
}

void Ports::fail(const std::string& port, const Error& error) {
  self_->quit(remoting::to_caf(
      Error{error.code, fmt::format("port '{}' broke the protocol: {}", port, error.message)}));
}

}  // namespace troupe::graph
