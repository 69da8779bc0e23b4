#include "runtime/remoting/internal/endpoint.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/actor_registry.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>
#include <fmt/format.h>

#include "runtime/remoting/caf_error.hpp"
#include "runtime/remoting/internal/sender.hpp"
#include "runtime/remoting/internal/watch.hpp"

namespace troupe::remoting {
namespace {

constexpr std::size_t kRememberedEnds = 256;

caf::error unreachable() {
  return caf::make_error(caf::exit_reason::remote_link_unreachable);
}

/// The response to a request that nobody else will answer.
void answer(const caf::strong_actor_ptr& asker, caf::message_id request, const caf::error& reason) {
  asker->enqueue(nullptr, request.response_id(), caf::make_message(reason), nullptr);
}

caf::error not_sent_error(const Error& reason) {
  return reason.code == Code::unavailable ? unreachable() : to_caf(reason);
}

}  // namespace

Endpoint::Endpoint(caf::actor_system& system, transport::Transport& transport,
                   const Options& options)
    : system_(system),
      transport_(transport),
      node_(options.node),
      caf_node_(system.node()),
      warn_(options.warn),
      proxies_(system, *this),
      context_(&system),
      unit_(system, proxies_, transport, options.clock != nullptr ? *options.clock : steady_clock_,
            options.run_inline),
      reader_(system) {
  context_.proxy_registry_ptr(&proxies_);
}

Endpoint::~Endpoint() = default;

void Endpoint::set_resolver(Remoting::Resolver resolver) {
  MutexLock lock(mutex_);
  resolver_ = std::move(resolver);
}

Endpoint::RoutePtr Endpoint::route_to(NodeId node) {
  MutexLock lock(mutex_);
  auto& route = routes_[node];
  if (route == nullptr) {
    route = std::make_shared<Route>(node, to_caf(node), transport_, *this);
    if (!running_) route->lose();
  }
  return route;
}

void Endpoint::post(std::function<void()> task) {
  transport_.post([weak = weak_from_this(), task = std::move(task)] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    MutexLock lock(self->gate_);
    if (self->running_) task();
  });
}

// --- proxies -------------------------------------------------------------------------------------

caf::strong_actor_ptr Endpoint::make_proxy(caf::node_id node, caf::actor_id actor) {
  const auto id = from_caf(node);
  if (!id.valid() || id == node_ || actor == caf::invalid_actor_id) return nullptr;
  const auto route = route_to(id);
  caf::actor_config config;
  auto made = caf::make_actor<RemoteActor, caf::strong_actor_ptr>(
      actor, route->caf_node(), &system_, config, route, static_cast<ProxyOwner&>(*this));
  if (route->lost()) {
    // Nobody observes it yet, so nothing is sent while the registry's lock is held.
    static_cast<RemoteActor*>(made->get())->kill_proxy(nullptr, unreachable());
    post([this, route, actor] { proxies_.erase(route->caf_node(), actor); });
  } else {
    route->queue({.kind = Kind::monitor, .destination = actor});
  }
  return made;
}

caf::actor Endpoint::proxy(const Route& route, caf::actor_id actor) {
  return caf::actor_cast<caf::actor>(proxies_.get_or_put(route.caf_node(), actor));
}

void Endpoint::export_later(caf::strong_actor_ptr actor) {
  post([this, actor = std::move(actor)] { export_actor(actor); });
}

void Endpoint::export_actor(const caf::strong_actor_ptr& actor) {
  const auto id = actor->id();
  system_.registry().put(id, actor);
  {
    MutexLock lock(mutex_);
    if (!exported_.insert(id).second) return;
  }
  // What was attached last is told first: before the registry forgets the actor.
  actor->get()->attach_functor([weak = weak_from_this(), id](const caf::error& reason) {
    if (const auto self = weak.lock(); self != nullptr) self->note_end(id, reason);
  });
}

void Endpoint::note_end(caf::actor_id actor, const caf::error& reason) {
  MutexLock lock(mutex_);
  exported_.erase(actor);
  ended_.emplace_back(actor, reason);
  if (ended_.size() > kRememberedEnds) ended_.pop_front();
}

caf::error Endpoint::why_ended(caf::actor_id actor) const {
  MutexLock lock(mutex_);
  const auto found = std::find_if(ended_.rbegin(), ended_.rend(),
                                  [actor](const auto& end) { return end.first == actor; });
  return found != ended_.rend() ? found->second : caf::make_error(caf::exit_reason::unknown);
}

void Endpoint::reject(const caf::mailbox_element& what, const caf::error& reason) {
  if (what.sender != nullptr && what.mid.is_request()) answer(what.sender, what.mid, reason);
}

void Endpoint::forward(RemoteActor& to, caf::mailbox_element_ptr what) {
  const auto& route = to.route();
  if (!running_) return reject(*what, unreachable());
  if (const auto ended = to.take_ended_link(*what); ended != 0) {
    auto reason = what->content().get_as<caf::exit_msg>(0).reason;
    const Envelope exit{.kind = Kind::exit, .source = ended, .destination = to.id()};
    (void)send_written(*route, exit, [&](WireWriter& sink) { return sink(reason); });
    return;
  }
  SendLease lease(node_);
  auto error = what->mid.is_stream_message()
                   ? caf::make_error(caf::sec::invalid_argument, "streams stay on their node")
                   : write_message(context_, caf_node_, *lease, *what);
  if (error) {
    warn(fmt::format("a message to an actor of node {} was not sent: {}", short_name(route->node()),
                     from_caf(error).message));
    return reject(*what, error);
  }
  send_message(to, *what, *lease);
}

void Endpoint::send_message(RemoteActor& to, const caf::mailbox_element& what,
                            SendBuffers& buffers) {
  const auto& route = to.route();
  const bool is_local = what.sender != nullptr && what.sender->node() == caf_node_;
  const bool is_request = what.sender != nullptr && what.mid.is_request();
  // Before it leaves: the answer may be here before send() returns.
  if (is_request && is_local) pending_.add(what.sender, what.mid, route.get());
  if (is_request && !is_local) pending_.add_foreign(what.sender, what.mid, route.get());
  const Envelope envelope{.kind = Kind::message,
                          .source = is_local ? what.sender->id() : 0,
                          .destination = to.id(),
                          .message_id = what.mid.integer_value()};
  const auto sent =
      send(*route, envelope, buffers.scratch.bytes(), std::exchange(buffers.segments, {}));
  if (sent.ok()) return;
  // Whoever takes it out of the pending ones answers it.
  if (is_request && (!is_local || pending_.remove(what.sender->id(), what.mid)))
    reject(what, not_sent_error(sent.error()));
  lament(route, sent.error());
}

void Endpoint::not_sent(const RoutePtr& route, std::span<const std::byte> message,
                        const Error& reason) {
  const auto opened = open(message);
  if (!opened.ok()) return lament(route, reason);
  const auto& envelope = opened->envelope;
  const caf::message_id id{envelope.message_id};
  if (envelope.kind == Kind::message && id.is_request()) {
    auto asker = local(envelope.source);
    WireReader source{&context_, opened->body, {}};
    std::uint8_t flags = 0;
    const bool foreign = !source(flags) && (flags & kForeignSender) != 0 && !source(asker);
    if (asker != nullptr && (foreign || pending_.remove(envelope.source, id)))
      answer(asker, id, not_sent_error(reason));
  }
  if (envelope.kind == Kind::lookup || envelope.kind == Kind::spawn)
    give_up(envelope.message_id, reason);
  lament(route, reason);
}

void Endpoint::lament(const RoutePtr& route, const Error& reason) {
  if (reason.code == Code::unavailable) return;  // the connection has ended: on_lost() follows
  warn(fmt::format("a message to an actor of node {} was not sent: {}", short_name(route->node()),
                   reason.message));
  // A message is missing now; what comes after it must not arrive as if nothing were.
  if (reason.code == Code::resource_exhausted)
    post([this, route, reason] {
      for (const auto peer : route->peers()) transport_.close(peer, reason);
    });
}

Status Endpoint::send(Route& route, const Envelope& envelope, std::span<const std::byte> body,
                      std::vector<Buffer> segments) {
  if (body.size() > std::numeric_limits<std::uint32_t>::max())
    return Error{Code::invalid_argument,
                 fmt::format("a message of {} bytes is too large; put the bulk of it into a Buffer",
                             body.size())};
  Head head;
  encode(envelope, static_cast<std::uint32_t>(body.size()), head);
  return route.send(head, body, std::move(segments));
}

void Endpoint::warn(const std::string& text) const {
  if (warn_) warn_(text);
}

// --- loss ----------------------------------------------------------------------------------------

void Endpoint::bounce(const Route* route) {
  for (const auto& request : pending_.take(route))
    if (const auto sender = request.sender.lock(); sender != nullptr)
      answer(sender, request.id, unreachable());
}

void Endpoint::unwatch_all(const RoutePtr& route) {
  for (const auto actor : route->unwatch_all())
    if (const auto watched = local(actor); watched != nullptr)
      watched->get()->detach(Watch::token_of(*route));
}

void Endpoint::fail_route(const RoutePtr& route, const Error& why) {
  route->reset();
  if (route->peers().empty() && route->lose()) {
    // Not lost for good: whoever names the node again gets a new route.
    MutexLock lock(mutex_);
    const auto found = routes_.find(route->node());
    if (found != routes_.end() && found->second == route) routes_.erase(found);
  }
  unwatch_all(route);
  bounce(route.get());
  proxies_.erase(route->caf_node());
  calls_.fail(route.get(), why);
}

void Endpoint::node_lost(NodeId node, const Error& reason) {
  const auto route = route_to(node);
  if (!route->lose()) return;
  post([this, route, reason] {
    for (const auto peer : route->peers()) {
      transport_.close(peer, reason);
      peers_.erase(peer);
      route->disconnected(peer);
    }
    fail_route(route, reason);
  });
}

void Endpoint::stop() {
  if (!running_.exchange(false)) return;
  unit_.close();
  // What the progress thread is at now is the last. (On that thread itself it is the caller.)
  if (!transport_.on_progress_thread()) MutexLock barrier(gate_);
  std::unordered_map<NodeId, RoutePtr> routes;
  std::map<std::string, caf::actor> names;
  std::unordered_map<caf::actor_id, caf::weak_actor_ptr> spawned;
  {
    MutexLock lock(mutex_);
    routes.swap(routes_);
    names.swap(names_);
    spawned.swap(spawned_);
    resolver_ = nullptr;
  }
  for (const auto& [node, route] : routes) {
    route->lose();
    unwatch_all(route);
  }
  bounce(nullptr);
  proxies_.clear();
  calls_.fail(nullptr, {Code::cancelled, "this node's actors were stopped"});
  for (const auto& [id, actor] : spawned)
    if (const auto alive = actor.lock(); alive != nullptr)
      end_actor(caf::actor_cast<caf::actor>(alive));
  // Other nodes' handles kept these alive; CAF does not say which they are.
  for (caf::actor_id id = 1; id <= system_.latest_actor_id(); ++id) system_.registry().erase(id);
}

}  // namespace troupe::remoting
