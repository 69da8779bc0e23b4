#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/message.hpp>

#include "runtime/base/clock.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/control/store.hpp"
#include "runtime/membership/view.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe {

struct RuntimeOptions {
  std::string name = "node";
  transport::Address listen{"127.0.0.1", 0};  ///< others are told this host: no wildcard
  std::string token;                          ///< needed to listen on anything but loopback
  std::uint32_t slots = 1;                    ///< ranks computed at the same time here
  std::size_t threads = 0;                    ///< of the actor scheduler; 0 means slots + 1
  Duration join_timeout = std::chrono::seconds(10);
  // The head's hold for the whole cluster. A limit is silence that makes a node suspect.
  Duration heartbeat_period = std::chrono::milliseconds(100);
  Duration heartbeat_limit = std::chrono::seconds(1);
  /// Heads only: what is kept here of the cluster outlives this process, and a head with the same
  /// store takes the cluster over as it stands. Without one the cluster ends with its head.
  std::shared_ptr<control::Store> store;
  Duration lead_timeout = std::chrono::seconds(5);  ///< to wait for the end of another head
  Duration headless = std::chrono::minutes(2);      ///< how long nodes then wait for another
  // Nodes that join: where the head may be instead, and whether to try again until the timeout if
  // none answers.
  std::vector<transport::Address> other_heads;
  bool wait_for_head = false;
  bool shared_memory = true;
  bool run_inline = true;  ///< run short actors on the thread where their message arrives
  /// Adds the program's message types and actor types.
  std::function<void(caf::actor_system_config&)> configure;
};

/// One node of a cluster, inside this process: the face of Troupe for programs that embed it.
///
/// Takes no signal handler, keeps no global state; several fit in one process. After stop() no
/// thread, file or shared segment of it is left.
///
/// Ownership: the program owns it; actors spawned through it end at stop().
/// Threads:   any, unless a method says otherwise.
/// Failure:   what can fail returns an error; the loss of other nodes is reported to subscribers.
class Runtime {
public:
  /// Starts a cluster of which this process is the head, or takes over the one that is in
  /// `options.store`. Errors: `address_in_use`, `permission_denied` (listening beyond loopback
  /// without a token), `invalid_argument`; those of control::Store::lead().
  static Result<std::unique_ptr<Runtime>> start_cluster(RuntimeOptions options);

  /// Joins the cluster whose head listens at `head`. Returns when this node is in and connected to
  /// all others. Errors: `unavailable`, `deadline_exceeded`, `permission_denied`,
  /// `version_mismatch`.
  static Result<std::unique_ptr<Runtime>> join(const transport::Address& head,
                                               RuntimeOptions options);

  virtual ~Runtime() = default;

  virtual NodeId id() const = 0;
  virtual transport::Address address() const = 0;  ///< what others join at
  virtual bool is_head() const = 0;
  /// A head's; null without one.
  virtual control::Store* store() const = 0;
  /// A head's number: above that of every head before it of the same store; else 1.
  virtual std::uint64_t term() const = 0;
  virtual caf::actor_system& system() = 0;
  virtual View view() const = 0;

  /// Waits until `count` nodes with slots are members. Errors: `deadline_exceeded` with how many
  /// there are, `unavailable` if this node fell out.
  virtual Status wait_for_nodes(std::size_t count, Duration timeout) = 0;

  /// Calls `on_change` with each new view and who left for it, on a thread of the runtime; it must
  /// return soon. Ends when the returned number is given to unsubscribe(), which waits for a call
  /// in progress.
  using ViewCallback = std::function<void(const View&, const std::vector<Departure>&)>;
  virtual std::uint64_t subscribe(ViewCallback on_change) = 0;
  virtual void unsubscribe(std::uint64_t subscription) = 0;

  /// Has a member leave without haste, this node or another: its next view says that it is
  /// draining, and it gets no new work. Whoever owns its process watches for that, waits until its
  /// work is done, and stops it. Errors: `not_found` if it is no member, `failed_precondition` for
  /// the head.
  virtual Status drain(NodeId node) = 0;

  /// Set when this node is out of the cluster for good; ok() while it is in. `stale_generation`:
  /// it was fenced (suspected and put out); it may join again as a new node. `unavailable`: its
  /// head is lost. `cancelled`: it left, or the head ended the cluster. `protocol_error`: its head
  /// talked nonsense.
  virtual Status membership_status() const = 0;
  /// Waits until this node is out (fenced, head lost, or stop()), or until `timeout`.
  virtual Status wait_until_out(Duration timeout) = 0;

  // Actors; see remoting::Remoting for errors. Blocking: not from a cooperative actor.
  virtual Status register_name(const std::string& name, const caf::actor& actor) = 0;
  virtual Result<caf::actor> lookup(NodeId node, const std::string& name,
                                    Duration timeout = std::chrono::seconds(5)) = 0;
  virtual Result<caf::actor> spawn_on(NodeId node, const std::string& type, caf::message arguments,
                                      Duration timeout = std::chrono::seconds(5)) = 0;
  virtual void spawn_on_async(NodeId node, const std::string& type, caf::message arguments,
                              Duration timeout, std::function<void(Result<caf::actor>)> done) = 0;

  virtual transport::Stats transport_stats() const = 0;

  /// Leaves the cluster in order (the head ends it for all), waiting for a heartbeat limit and a
  /// second at most, and stops everything. Handles to actors must be gone by then, those in
  /// scoped actors too. Not from a subscriber, an actor or a callback. Idempotent; the destructor
  /// calls it.
  virtual void stop() = 0;
};

}  // namespace troupe
