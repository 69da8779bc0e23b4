#pragma once

#include <memory>

#include <caf/actor_proxy.hpp>

#include "runtime/remoting/internal/route.hpp"

namespace troupe::remoting {

class RemoteActor;

/// Where proxies send what they are given.
class ProxyOwner {
public:
  virtual ~ProxyOwner() = default;
  /// Any thread; may block. Answers requests itself if they cannot be sent.
  virtual void forward(RemoteActor& to, caf::mailbox_element_ptr what) = 0;
  /// Makes a linked actor of this node findable: soon, for the caller holds its lock.
  virtual void export_later(caf::strong_actor_ptr actor) = 0;
  /// `to` has ended.
  virtual void reject(const caf::mailbox_element& what, const caf::error& reason) = 0;
};

/// Stands for an actor of another node.
///
/// Ownership: the proxy registry holds it until the actor or its node is gone, handles after that.
///            The owner outlives the actor system.
/// Threads:   any.
class RemoteActor final : public caf::actor_proxy {
public:
  RemoteActor(caf::actor_config& config, std::shared_ptr<Route> route, ProxyOwner& owner);

  const std::shared_ptr<Route>& route() const noexcept { return route_; }
  bool ended() const { return getf(is_terminated_flag); }

  // What others do to the actor.
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* unit) override;
  void kill_proxy(caf::execution_unit* unit, caf::error reason) override;
  const char* name() const override { return "troupe.remote"; }

  // Called by CAF with this actor's and the other's lock held: only to queue.
  bool add_backlink(caf::abstract_actor* other) override;
  bool remove_backlink(caf::abstract_actor* other) override;

  // What the other node says; nothing goes back to it.
  void linked_by_peer(const caf::strong_actor_ptr& local);
  /// False if they were not linked.
  bool unlinked_by_peer(const caf::strong_actor_ptr& local);

  /// If `what` says that a linked actor of this node has ended: its number, and the link is gone;
  /// the other node is told in a way that ends its side of the link too, which would otherwise
  /// send a second exit message. 0 for any other message.
  std::uint64_t take_ended_link(const caf::mailbox_element& what);

private:
  const std::shared_ptr<Route> route_;
  ProxyOwner& owner_;
};

}  // namespace troupe::remoting
