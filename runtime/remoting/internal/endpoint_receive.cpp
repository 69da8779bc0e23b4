#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/actor_registry.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>
#include <fmt/format.h>

#include "runtime/remoting/caf_error.hpp"
#include "runtime/remoting/internal/endpoint.hpp"
#include "runtime/remoting/internal/watch.hpp"

// What arrives from other nodes. Nothing in it is believed: whatever does not hold together ends
// that connection, with the reason.

namespace troupe::remoting {
namespace {

caf::error left_over() {
  return caf::make_error(caf::sec::end_of_stream);
}

caf::error require_done(const WireReader& source) {
  return source.done() ? caf::error{} : left_over();
}

}  // namespace

void Endpoint::on_connected(transport::PeerId peer, const transport::PeerInfo& info) {
  MutexLock lock(gate_);
  if (!running_ || !info.node.valid() || info.node == node_) return;
  const auto route = route_to(info.node);
  if (route->lost())
    return transport_.close(
        peer, Error{Code::failed_precondition,
                    fmt::format("node {} was given up; it may join again as a new node",
                                short_name(info.node))});
  peers_.emplace(peer, route);
  route->connected(peer);
}

void Endpoint::on_lost(transport::PeerId peer, const Error& reason) {
  MutexLock lock(gate_);
  const auto found = peers_.find(peer);
  if (!running_ || found == peers_.end()) return;
  const auto route = std::move(found->second);
  peers_.erase(found);
  if (!route->disconnected(peer)) return;
  // Of two connections one was closed after everything on it was sent.
  if (reason.code == Code::cancelled && !route->peers().empty()) return route->flush();
  fail_route(route, reason);
}

void Endpoint::on_message(transport::PeerId peer, std::span<const std::byte> bytes,
                          std::span<Buffer> segments) {
  MutexLock lock(gate_);
  const auto found = peers_.find(peer);
  if (!running_ || found == peers_.end() || found->second->lost()) return;
  const auto route = found->second;
  Status status;
  auto opened = open(bytes);
  if (opened.ok()) {
    WireReader source{&context_, opened->body, segments};
    status = dispatch({route, opened->envelope, source});
  } else {
    status = opened.status();
  }
  if (status.ok()) return;
  const auto reason =
      Error{Code::protocol_error, fmt::format("node {} broke the protocol of actor messages: {}",
                                              short_name(route->node()), status.error().message)};
  transport_.close(peer, reason);
  peers_.erase(peer);
  if (route->disconnected(peer)) fail_route(route, reason);
}

Status Endpoint::dispatch(const Incoming& in) try {
  caf::error error;
  switch (in.envelope.kind) {
    case Kind::message:
      error = take_message(in);
      break;
    case Kind::exit:
      error = take_exit(in);
      break;
    case Kind::down:
      error = take_down(in);
      break;
    case Kind::lookup:
      error = take_lookup(in);
      break;
    case Kind::found:
      error = take_found(in);
      break;
    case Kind::spawn:
      error = take_spawn(in);
      break;
    case Kind::spawned:
      error = take_spawned(in);
      break;
    case Kind::monitor:
      error = require_done(in.source);
      if (!error) take_monitor(in);
      break;
    case Kind::link:
    case Kind::unlink:
      error = require_done(in.source);
      if (!error) take_link(in);
      break;
  }
  if (!error) return {};
  return Error{Code::protocol_error,
               fmt::format("the body of kind {}: {}", static_cast<int>(in.envelope.kind),
                           caf::to_string(error))};
} catch (const std::exception& e) {
  // From a type's inspection, or no memory for what it read.
  return Error{Code::protocol_error, fmt::format("the body of kind {}: {}",
                                                 static_cast<int>(in.envelope.kind), e.what())};
}

caf::strong_actor_ptr Endpoint::local(caf::actor_id actor) const {
  return system_.registry().get(actor);
}

caf::error Endpoint::take_message(const Incoming& in) {
  auto& source = in.source;
  std::uint8_t flags = 0;
  if (auto error = source(flags)) return error;
  if ((flags & ~(kForeignSender | kHasStages)) != 0) return left_over();
  caf::strong_actor_ptr sender;
  if ((flags & kForeignSender) != 0) {
    if (auto error = source(sender)) return error;
  } else if (in.envelope.source != 0) {
    sender = proxies_.get_or_put(in.route->caf_node(), in.envelope.source);
  }
  caf::mailbox_element::forwarding_stack stages;
  if ((flags & kHasStages) != 0)
    if (auto error = source(stages)) return error;
  caf::message content;
  if (auto error = reader_.read(source, content)) return error;
  if (auto error = require_done(source)) return error;
  const caf::message_id id{in.envelope.message_id};
  // CAF takes the content of a stream's message for what the id says, unchecked.
  if (id.is_stream_message()) return caf::make_error(caf::sec::invalid_argument);
  if (id.is_response()) pending_.remove(in.envelope.destination, id);
  const auto receiver = local(in.envelope.destination);
  auto element =
      caf::make_mailbox_element(std::move(sender), id, std::move(stages), std::move(content));
  if (receiver != nullptr)
    receiver->enqueue(std::move(element), &unit_);
  else
    reject(*element, caf::make_error(caf::sec::request_receiver_down));
  return {};
}

caf::error Endpoint::take_exit(const Incoming& in) {
  caf::error reason;
  if (auto error = in.source(reason)) return error;
  if (auto error = require_done(in.source)) return error;
  const auto ended = proxies_.get(in.route->caf_node(), in.envelope.source);
  const auto linked = local(in.envelope.destination);
  if (ended == nullptr || linked == nullptr ||
      !static_cast<RemoteActor*>(ended->get())->unlinked_by_peer(linked))
    return {};
  linked->enqueue(caf::make_mailbox_element(ended, caf::make_message_id(), {},
                                            caf::exit_msg{ended->address(), std::move(reason)}),
                  &unit_);
  return {};
}

caf::error Endpoint::take_down(const Incoming& in) {
  caf::error reason;
  if (auto error = in.source(reason)) return error;
  if (auto error = require_done(in.source)) return error;
  proxies_.erase(in.route->caf_node(), in.envelope.source, std::move(reason));
  return {};
}

void Endpoint::take_monitor(const Incoming& in) {
  const auto actor = in.envelope.destination;
  const auto watched = local(actor);
  if (watched == nullptr) {
    auto reason = why_ended(actor);
    const Envelope down{.kind = Kind::down, .source = actor};
    (void)send_written(*in.route, down, [&](WireWriter& sink) { return sink(reason); });
  } else if (in.route->watch(actor)) {
    watched->get()->attach(caf::attachable_ptr{
        new Watch(weak_from_this(), in.route, actor)});  // NOLINT: attach() owns
  }
}

void Watch::actor_exited(const caf::error& reason, caf::execution_unit*) {
  if (const auto endpoint = endpoint_.lock(); endpoint != nullptr)
    endpoint->tell_down(*route_, actor_, reason);
}

void Endpoint::tell_down(Route& route, caf::actor_id actor, caf::error reason) {
  if (!running_ || !route.unwatch(actor)) return;
  const Envelope down{.kind = Kind::down, .source = actor};
  (void)send_written(route, down, [&](WireWriter& sink) { return sink(reason); });
}

void Endpoint::take_link(const Incoming& in) {
  const auto here = local(in.envelope.destination);
  // If it is gone, its down message is on the way, and that ends the link.
  if (here == nullptr || in.envelope.source == 0) return;
  const bool link = in.envelope.kind == Kind::link;
  const auto there = link ? proxies_.get_or_put(in.route->caf_node(), in.envelope.source)
                          : proxies_.get(in.route->caf_node(), in.envelope.source);
  if (there == nullptr) return;
  auto& remote = static_cast<RemoteActor&>(*there->get());
  if (link)
    remote.linked_by_peer(here);
  else
    remote.unlinked_by_peer(here);
}

}  // namespace troupe::remoting
