#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/proxy_registry.hpp>
#include <caf/scoped_execution_unit.hpp>

#include "runtime/base/clock.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/remoting/internal/calls.hpp"
#include "runtime/remoting/internal/content.hpp"
#include "runtime/remoting/internal/envelope.hpp"
#include "runtime/remoting/internal/inline_unit.hpp"
#include "runtime/remoting/internal/pending_requests.hpp"
#include "runtime/remoting/internal/remote_actor.hpp"
#include "runtime/remoting/internal/route.hpp"
#include "runtime/remoting/internal/sender.hpp"
#include "runtime/remoting/remoting.hpp"

namespace troupe::remoting {

/// Asks the actor to shut down, and ends it if it does not take that.
void end_actor(const caf::actor& actor);

/// This node's end of all actor traffic: proxies on one side, the transport on the other.
///
/// Ownership: shared, so that what it posted to the transport may outlive its owner's interest;
///            borrows system and transport. Outlives the system's actors.
/// Threads:   any, but what is marked "progress" comes from the progress thread, with gate_ held:
///            so nothing arrives any more once stop() has had it.
/// Failure:   a peer that breaks the protocol is closed with `protocol_error`.
class Endpoint final : public transport::Handler,
                       public caf::proxy_registry::backend,
                       public RouteOwner,
                       public ProxyOwner,
                       public std::enable_shared_from_this<Endpoint> {
public:
  Endpoint(caf::actor_system& system, transport::Transport& transport, const Options& options);
  ~Endpoint() override;

  void set_resolver(Remoting::Resolver resolver);
  Status register_name(const std::string& name, const caf::actor& actor);
  /// Only if it is `actor` that has the name; invalid_actor_id: whoever has it.
  void forget_name(const std::string& name, caf::actor_id actor = caf::invalid_actor_id);
  caf::actor find_name(const std::string& name) const;

  /// Ask another node; `done` is called once. The number is for give_up().
  std::uint64_t lookup(NodeId node, const std::string& name, Calls::Done done);
  std::uint64_t spawn(NodeId node, const std::string& type, const caf::message& arguments,
                      Calls::Done done);
  void give_up(std::uint64_t call, const Error& reason);
  /// Spawns here, on the scheduler; `done` is called from there. The actor ends at stop().
  void spawn_here(std::string type, caf::message arguments, Calls::Done done);

  /// Hands `result` to `done` on the progress thread; after stop(), here.
  void finish_later(Result<caf::actor> result, Calls::Done done);

  void node_lost(NodeId node, const Error& reason);
  void stop();
  void wait_idle() { unit_.wait_idle(); }

  /// Runs `task` on the progress thread unless this was stopped meanwhile.
  void post(std::function<void()> task);

  // transport::Handler
  void on_connected(transport::PeerId peer, const transport::PeerInfo& info) override;
  void on_message(transport::PeerId peer, std::span<const std::byte> bytes,
                  std::span<Buffer> segments) override;
  void on_lost(transport::PeerId peer, const Error& reason) override;

  // caf::proxy_registry::backend: called with the registry's lock held.
  caf::strong_actor_ptr make_proxy(caf::node_id node, caf::actor_id actor) override;
  void set_last_hop(caf::node_id*) override {}

  // RouteOwner
  void connect_later(std::shared_ptr<Route> route) override;
  void flush_later(std::shared_ptr<Route> route) override;
  void not_sent(const std::shared_ptr<Route>& route, std::span<const std::byte> message,
                const Error& reason) override;

  // ProxyOwner
  void forward(RemoteActor& to, caf::mailbox_element_ptr what) override;
  void export_later(caf::strong_actor_ptr actor) override;
  void reject(const caf::mailbox_element& what, const caf::error& reason) override;

  /// The local actor `actor`, which `route`'s node monitors, has ended.
  void tell_down(Route& route, caf::actor_id actor, caf::error reason);

private:
  using RoutePtr = std::shared_ptr<Route>;
  struct Incoming {
    const RoutePtr& route;
    const Envelope& envelope;
    WireReader& source;
  };

  RoutePtr route_to(NodeId node);
  void connect(const RoutePtr& route);                       // progress
  void fail_route(const RoutePtr& route, const Error& why);  // progress
  /// Errors to whoever waits for an answer over `route` (null: any).
  void bounce(const Route* route);
  void unwatch_all(const RoutePtr& route);
  /// Says that a message was not sent, and ends the connection if what follows it must not arrive.
  void lament(const RoutePtr& route, const Error& reason);
  void warn(const std::string& text) const;

  // What arrives, by kind (progress). An error is a breach of the protocol.
  Status dispatch(const Incoming& in);
  caf::error take_message(const Incoming& in);
  caf::error take_exit(const Incoming& in);
  caf::error take_down(const Incoming& in);
  caf::error take_lookup(const Incoming& in);
  caf::error take_found(const Incoming& in);
  caf::error take_spawn(const Incoming& in);
  caf::error take_spawned(const Incoming& in);
  void take_monitor(const Incoming& in);
  void take_link(const Incoming& in);

  caf::strong_actor_ptr local(caf::actor_id actor) const;
  caf::actor proxy(const Route& route, caf::actor_id actor);
  void end_with_this_node(const caf::actor& spawned);
  /// Makes an actor of this node findable for others, and its end's reason for a while after it.
  void export_actor(const caf::strong_actor_ptr& actor);
  void note_end(caf::actor_id actor, const caf::error& reason);
  caf::error why_ended(caf::actor_id actor) const;
  void answer_spawn(Route& route, std::uint64_t call, const Result<caf::actor>& made);

  void send_message(RemoteActor& to, const caf::mailbox_element& what, SendBuffers& buffers);
  Status send(Route& route, const Envelope& envelope, std::span<const std::byte> body,
              std::vector<Buffer> segments = {});
  /// Sends a body that `write` writes into a WireWriter.
  template <class Write>
  Status send_written(Route& route, const Envelope& envelope, Write write) {
    SendLease lease(node_);
    WireWriter sink{&context_, lease->scratch, lease->segments};
    if (auto error = write(sink))
      return Error{Code::invalid_argument, "cannot be sent: " + caf::to_string(error)};
    return send(route, envelope, lease->scratch.bytes(), std::exchange(lease->segments, {}));
  }

  caf::actor_system& system_;
  transport::Transport& transport_;
  const NodeId node_;
  const caf::node_id caf_node_;
  const std::function<void(const std::string&)> warn_;
  SteadyClock steady_clock_;
  caf::proxy_registry proxies_;
  caf::scoped_execution_unit context_;  ///< what (de)serializing needs; shared, never changed
  InlineUnit unit_;
  ContentReader reader_;
  Calls calls_;
  PendingRequests pending_;
  std::atomic<bool> running_{true};

  mutable Mutex mutex_;  ///< never held while calling out
  Remoting::Resolver resolver_ TROUPE_GUARDED_BY(mutex_);
  std::map<std::string, caf::actor> names_ TROUPE_GUARDED_BY(mutex_);
  std::unordered_map<NodeId, RoutePtr> routes_ TROUPE_GUARDED_BY(mutex_);
  std::unordered_map<caf::actor_id, caf::weak_actor_ptr> spawned_ TROUPE_GUARDED_BY(mutex_);
  std::unordered_set<caf::actor_id> exported_ TROUPE_GUARDED_BY(mutex_);
  /// For monitors that were on their way; the latest few.
  std::deque<std::pair<caf::actor_id, caf::error>> ended_ TROUPE_GUARDED_BY(mutex_);

  Mutex gate_;  ///< held while anything that arrives is handled
  std::unordered_map<transport::PeerId, RoutePtr> peers_;  ///< progress
};

}  // namespace troupe::remoting
