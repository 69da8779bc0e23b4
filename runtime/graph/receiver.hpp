#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/message_handler.hpp>

#include "runtime/base/status.hpp"
#include "runtime/graph/credit.hpp"
#include "runtime/graph/messages.hpp"

namespace troupe::graph {

/// Where a value came from: what its credit goes back to.
struct Origin {
  std::uint32_t edge = 0;
  std::uint32_t replica = 0;  ///< of the producer
};

/// When a value counts as consumed.
enum class Consume : std::uint8_t {
  on_return,  ///< when its handler returns
  by_hand,    ///< when the actor says so, with InputPort::consumed()
};

/// What of an input does not depend on the type of its values; see CreditReceiver.
class InputPort {
public:
  InputPort(caf::event_based_actor* self, std::string name, Consume consume, std::type_index type)
      : self_(self), name_(std::move(name)), consume_(consume), type_(type) {}
  virtual ~InputPort() = default;
  InputPort(const InputPort&) = delete;
  InputPort& operator=(const InputPort&) = delete;

  const std::string& name() const { return name_; }
  bool connected() const { return !edges_.empty(); }
  /// Producers that are neither finished nor lost.
  std::size_t producers() const;

  /// A value that was kept is done with (Consume::by_hand). One of a producer that has been lost
  /// since is ignored.
  void consumed(const Origin& origin);

  /// `on_finished` is called once, when the last producer has finished or was lost.
  void on_finished(std::function<void()> on_finished) { on_finished_ = std::move(on_finished); }

protected:
  caf::event_based_actor* self_;

private:
  friend class Ports;
  struct Producer {
    Peer peer;
    CreditReturn credit;
    bool finished = false;
  };
  struct InEdge {
    std::uint32_t number;
    std::uint32_t replica;  ///< ours
    std::vector<Producer> producers;
  };

  Producer* find(const Origin& origin, InEdge** edge = nullptr);
  bool has(std::uint32_t edge) const;
  void connect(const Connected& connected);
  Status arrived(const Delivery& delivery);
  void handled(const Origin& origin);
  void finished(const Finished& finished);
  /// Forgets producers that are `actor`; calls `lost` for each that had not finished.
  void drop(const caf::actor_addr& actor, const std::function<void(std::uint32_t)>& lost);
  void notify(bool had_producers);

  std::string name_;
  Consume consume_;
  std::type_index type_;
  std::vector<InEdge> edges_;
  std::function<void()> on_finished_;
};

/// An actor's input: hands values on as they come and returns credit for those consumed.
///
/// Ownership: owned by the actor's Ports.
/// Threads:   owner actor only.
/// Failure:   a producer that sends without credit or out of order breaks the protocol, which ends
///            the actor with `protocol_error`.
template <class T>
class CreditReceiver final : public InputPort {
public:
  using Handler = std::function<void(T& value, const Origin& from)>;

  CreditReceiver(caf::event_based_actor* self, std::string name, Consume consume, Handler handler)
      : InputPort(self, std::move(name), consume, typeid(T)), handler_(std::move(handler)) {}

private:
  friend class Ports;
  Handler handler_;
};

}  // namespace troupe::graph
