#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <caf/event_based_actor.hpp>

#include "runtime/base/status.hpp"
#include "runtime/graph/credit.hpp"
#include "runtime/graph/messages.hpp"

namespace troupe::graph {

/// What of an output does not depend on the type of its values; see CreditSender.
class OutputPort {
public:
  OutputPort(caf::event_based_actor* self, std::string name)
      : self_(self), name_(std::move(name)) {}
  virtual ~OutputPort() = default;
  OutputPort(const OutputPort&) = delete;
  OutputPort& operator=(const OutputPort&) = delete;

  const std::string& name() const { return name_; }
  /// False for an optional output that nobody is connected to.
  bool connected() const { return !edges_.empty(); }
  /// True if send() has credit now.
  bool ready() const;
  /// Consumers that are not lost, on all edges.
  std::size_t consumers() const;
  /// Sent to these, and not known to be consumed.
  std::uint64_t in_flight() const;

  /// `on_ready` is called each time the port becomes ready after it was not: credit came back, or
  /// who held it was lost.
  void on_ready(std::function<void()> on_ready) { on_ready_ = std::move(on_ready); }

  /// Tells the consumers that no more comes; send() fails from now on.
  void finish();

protected:
  struct Target {
    caf::actor actor;
    Delivery header;
  };
  /// Takes the credit that one send needs.
  Result<std::vector<Target>> claim();
  Result<std::vector<Target>> claim_for(std::uint32_t replica);

  caf::event_based_actor* self_;

private:
  friend class Ports;
  struct Consumer {
    Peer peer;
    CreditWindow window;
  };
  struct OutEdge {
    std::uint32_t number;
    Pattern pattern;
    std::uint32_t replica;  ///< ours
    std::vector<Consumer> consumers;
    std::size_t next = 0;  ///< whose turn it is, for all_to_all

    bool goes_to_all() const;
    bool ready() const;
  };

  OutEdge* find(std::uint32_t edge);
  Status check_open() const;
  void take(OutEdge& edge, Consumer& consumer, std::vector<Target>& targets) const;
  void connect(const Connected& connected);
  Status credit(OutEdge& edge, const Credit& credit);
  /// Forgets consumers that are `actor`; calls `lost` for each with what was in flight to it.
  void drop(const caf::actor_addr& actor,
            const std::function<void(std::uint32_t, std::uint32_t)>& lost);
  void notify(bool was_ready);

  std::string name_;
  std::vector<OutEdge> edges_;
  std::function<void()> on_ready_;
  bool finished_ = false;
};

/// An actor's output: sends values as long as their consumers have room for them.
///
///     void pump() { while (out.ready()) out.send(next()); }   // at start, and as on_ready
///
/// Ownership: owned by the actor's Ports.
/// Threads:   owner actor only.
/// Failure:   a lost consumer takes what was in flight to it with it, and no longer holds the
///            producer up; Ports::on_peer_lost tells.
/// Invariant: no consumer replica has more than the edge's capacity of unconsumed values from here.
template <class T>
class CreditSender final : public OutputPort {
public:
  using OutputPort::OutputPort;

  /// Sends by the edge's pattern: to the only consumer, to all (broadcast, local), or to the next
  /// that has room (all_to_all). Errors: `resource_exhausted` (no credit: wait for on_ready),
  /// `unavailable` (no consumer left), `failed_precondition` (finished, or not connected).
  Status send(const T& value) { return deliver(claim(), value); }

  /// Sends to one replica of the consumers. Errors: as send(); `not_found` if there is none.
  Status send_to(std::uint32_t replica, const T& value) {
    return deliver(claim_for(replica), value);
  }

private:
  Status deliver(Result<std::vector<Target>> targets, const T& value) {
    if (!targets.ok()) return targets.status();
    for (const Target& target : *targets) self_->send(target.actor, target.header, value);
    return {};
  }
};

}  // namespace troupe::graph
