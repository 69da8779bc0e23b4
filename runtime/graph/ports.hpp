#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/message_handler.hpp>
#include <caf/result.hpp>
#include <caf/system_messages.hpp>

#include "runtime/base/check.hpp"
#include "runtime/graph/messages.hpp"
#include "runtime/graph/receiver.hpp"
#include "runtime/graph/sender.hpp"

namespace troupe::graph {

/// A replica at the other end of an edge that is gone before it had finished.
struct PeerLost {
  std::string port;
  bool output = false;  ///< an output lost its consumer, otherwise an input its producer
  std::uint32_t replica = 0;
  std::uint32_t in_flight = 0;  ///< values sent to it of which it is not known if it used them
  caf::error reason;
};

/// An actor's side of the graph: its ports, and the handlers that make them work.
///
///     struct WorkerState {
///       explicit WorkerState(caf::event_based_actor* self) : ports(self) {}
///       Ports ports;
///     };
///     caf::behavior worker(caf::stateful_actor<WorkerState>* self) {
///       auto& out = self->state.ports.output<Square>("squares");
///       self->state.ports.input<int>("numbers", [&out](int& n, const Origin&) { ... });
///       return self->state.ports.handlers();
///     }
///
/// Watches the actors at the other ends (it sets the actor's down handler) and forgets those that
/// end, so that the loss of a node never holds anybody up.
///
/// Ownership: a member of the actor's state; the ports live as long.
/// Threads:   owner actor only.
/// Failure:   a peer that breaks the protocol ends this actor with `protocol_error`.
class Ports {
public:
  explicit Ports(caf::event_based_actor* self);
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  /// `name` as in the graph.
  template <class T>
  CreditSender<T>& output(std::string name);
  /// `handler` is called with each value.
  template <class T>
  CreditReceiver<T>& input(std::string name, typename CreditReceiver<T>::Handler handler,
                           Consume consume = Consume::on_return);

  /// `start` is called when all actors of the graph are connected.
  void on_start(std::function<void()> start) { on_start_ = std::move(start); }
  void on_peer_lost(std::function<void(const PeerLost&)> lost) { on_lost_ = std::move(lost); }
  /// For what the actor monitors itself.
  void on_other_down(std::function<void(const caf::down_msg&)> down) {
    on_other_down_ = std::move(down);
  }

  /// What the actor has to handle, once all ports are declared. Add its own with or_else().
  caf::message_handler handlers();

private:
  caf::message_handler control_handlers();
  caf::result<void> connect(const Connected& connected);
  void credit(const Credit& credit);
  void finished(const Finished& finished);
  void down(const caf::down_msg& down);
  void fail(const std::string& port, const Error& error);

  OutputPort* find_output(const std::string& name) const;
  InputPort* find_input(const std::string& name) const;
  /// The input that `delivery` is for, if the value's type is right and credit was there.
  InputPort* accept(const Delivery& delivery, std::type_index type);
  /// One handler for each type of value.
  void add_handler(std::type_index type, const caf::message_handler& handler);

  template <class T>
  void deliver(const Delivery& delivery, T& value);

  caf::event_based_actor* self_;
  std::vector<std::unique_ptr<OutputPort>> outputs_;
  std::vector<std::unique_ptr<InputPort>> inputs_;
  std::set<std::type_index> types_;
  caf::message_handler deliveries_;
  std::set<caf::actor_addr> watched_;
  std::function<void()> on_start_;
  std::function<void(const PeerLost&)> on_lost_;
  std::function<void(const caf::down_msg&)> on_other_down_;
};

template <class T>
CreditSender<T>& Ports::output(std::string name) {
  TROUPE_CHECK(find_output(name) == nullptr, "two outputs named " + name);
  auto port = std::make_unique<CreditSender<T>>(self_, std::move(name));
  auto& result = *port;
  outputs_.push_back(std::move(port));
  return result;
}

template <class T>
CreditReceiver<T>& Ports::input(std::string name, typename CreditReceiver<T>::Handler handler,
                                Consume consume) {
  TROUPE_CHECK(find_input(name) == nullptr, "two inputs named " + name);
  auto port =
      std::make_unique<CreditReceiver<T>>(self_, std::move(name), consume, std::move(handler));
  auto& result = *port;
  inputs_.push_back(std::move(port));
  add_handler(typeid(T), {[this](const Delivery& d, T& value) { deliver<T>(d, value); }});
  return result;
}

template <class T>
void Ports::deliver(const Delivery& delivery, T& value) {
  InputPort* port = accept(delivery, typeid(T));
  if (port == nullptr) return;
  const Origin from{delivery.edge, delivery.replica};
  static_cast<CreditReceiver<T>*>(port)->handler_(value, from);
  port->handled(from);
}

}  // namespace troupe::graph
