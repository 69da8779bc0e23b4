#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/message.hpp>

#include "runtime/base/clock.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::remoting {

/// The node id inside CAF's, and back. Invalid in, invalid out.
caf::node_id to_caf(NodeId id);
NodeId from_caf(const caf::node_id& id);

struct Options {
  NodeId node;                                        ///< required: the same as the transport's
  std::size_t threads = 2;                            ///< of CAF's scheduler
  Duration lookup_timeout = std::chrono::seconds(5);  ///< default for lookup and spawn
  bool run_inline = true;        ///< run short actors on the thread where their message arrives
  const Clock* clock = nullptr;  ///< measures how long those actors run; null: the machine's
  /// Told, on any thread, of a message that could not be sent (a type that was not added to the
  /// configuration, a message too large, a peer whose queue stayed full). A request gets the error
  /// as its response too.
  std::function<void(const std::string&)> warn;
  /// Adds the program's message types and actor types (those that other nodes may spawn). Called
  /// once, before the actor system starts.
  std::function<void(caf::actor_system_config&)> configure;
};

/// A CAF actor system whose actors reach those of other nodes over a Transport.
///
/// A remote actor is an ordinary caf::actor: send, request, monitor, link, down and exit messages
/// and actor handles inside messages work. When its node is lost, requests in flight fail at once
/// (caf::exit_reason::remote_link_unreachable), and down and exit messages are sent.
///
/// Messages are in order between any two actors, each once, or the node is lost. CAF's streams and
/// groups stay on their node.
///
/// Actors that became known to another node (as sender, inside a message, by lookup or spawn) are
/// kept until they end or stop() is called: nodes do not count each other's handles. Actors of
/// other nodes are likewise known here until they or their node end.
///
/// Ownership: owned by a Runtime; borrows the transport. In this order: Remoting::stop(), stop the
///            transport, destroy this, destroy the transport.
/// Threads:   any, unless a method says otherwise.
class Remoting {
public:
  /// Where to connect for a node that has no connection yet; none if there is no such node.
  using Resolver = std::function<std::optional<transport::Address>(NodeId)>;

  virtual ~Remoting() = default;

  virtual caf::actor_system& system() = 0;

  /// Before the first remote message. Called from any thread, must not block.
  virtual void set_resolver(Resolver resolver) = 0;

  /// Makes `actor` findable by other nodes. Errors: `already_exists`.
  virtual Status register_name(const std::string& name, const caf::actor& actor) = 0;
  virtual void unregister_name(const std::string& name) = 0;

  /// The actor that is registered as `name` on `node` (this one too). Blocks: never call it from a
  /// cooperatively scheduled actor. A timeout of 0 is Options::lookup_timeout. Errors: `not_found`,
  /// `unavailable`, `deadline_exceeded`, `failed_precondition` (from the progress thread).
  virtual Result<caf::actor> lookup(NodeId node, const std::string& name, Duration timeout) = 0;

  /// Spawns a registered actor type (caf::actor_system_config::add_actor_type) on `node`. Blocks.
  /// Errors: `not_found` (no such type there), `invalid_argument` (its arguments), `unavailable`,
  /// `deadline_exceeded`.
  virtual Result<caf::actor> spawn(NodeId node, const std::string& type, caf::message arguments,
                                   Duration timeout) = 0;

  /// The same without blocking; `done` is called once, on the progress thread (by stop(): on its
  /// caller's) and must not block.
  virtual void spawn_async(NodeId node, const std::string& type, caf::message arguments,
                           Duration timeout, std::function<void(Result<caf::actor>)> done) = 0;

  /// The membership says that `node` is out: drops its connection, fails what is in flight to it,
  /// sends down and exit messages, and refuses it from now on.
  virtual void node_lost(NodeId node, const Error& reason) = 0;

  /// Ends all local actors' remote side: no message leaves or arrives after it. Then the actor
  /// system may be destroyed (the destructor does, waiting for local actors to end).
  virtual void stop() = 0;
};

/// Sets itself as the transport's handler of Channel::actors; call before transport.start().
Result<std::unique_ptr<Remoting>> make_remoting(Options options, transport::Transport& transport);

}  // namespace troupe::remoting
