#include "runtime/remoting/internal/remote_actor.hpp"

#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/default_attachable.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

namespace troupe::remoting {
namespace {

using Attachable = caf::default_attachable;

Attachable::observe_token link_seen_by(const caf::actor_addr& observer) {
  return {observer, Attachable::link};
}

}  // namespace

RemoteActor::RemoteActor(caf::actor_config& config, std::shared_ptr<Route> route, ProxyOwner& owner)
    : caf::actor_proxy(config), route_(std::move(route)), owner_(owner) {}

void RemoteActor::enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) {
  if (ended()) {
    // CAF's word for an actor that ended while its node lives is this one.
    const auto reason = fail_state();
    owner_.reject(*what, reason == caf::exit_reason::remote_link_unreachable
                             ? reason
                             : caf::make_error(caf::sec::request_receiver_down));
    return;
  }
  owner_.forward(*this, std::move(what));
}

void RemoteActor::kill_proxy(caf::execution_unit* unit, caf::error reason) {
  cleanup(std::move(reason), unit);
}

bool RemoteActor::add_backlink(caf::abstract_actor* other) {
  if (!caf::monitorable_actor::add_backlink(other)) return false;
  owner_.export_later(caf::strong_actor_ptr{other->ctrl()});
  route_->queue({.kind = Kind::link, .source = other->id(), .destination = id()});
  return true;
}

bool RemoteActor::remove_backlink(caf::abstract_actor* other) {
  if (!caf::monitorable_actor::remove_backlink(other)) return false;
  route_->queue({.kind = Kind::unlink, .source = other->id(), .destination = id()});
  return true;
}

void RemoteActor::linked_by_peer(const caf::strong_actor_ptr& local) {
  const auto here = address();
  const auto there = caf::actor_cast<caf::actor_addr>(local);
  unlinked_by_peer(local);
  attach(Attachable::make_link(here, there));
  local->get()->attach(Attachable::make_link(there, here));
}

bool RemoteActor::unlinked_by_peer(const caf::strong_actor_ptr& local) {
  const auto here = link_seen_by(address());
  const auto there = link_seen_by(caf::actor_cast<caf::actor_addr>(local));
  local->get()->detach(here);
  return detach(there) != 0;
}

std::uint64_t RemoteActor::take_ended_link(const caf::mailbox_element& what) {
  if (!what.content().match_elements<caf::exit_msg>()) return 0;
  const auto& source = what.content().get_as<caf::exit_msg>(0).source;
  if (source == nullptr || source.node() == node()) return 0;
  // One that cannot be held any more is being destroyed.
  const auto alive = caf::actor_cast<caf::strong_actor_ptr>(source);
  if (alive != nullptr && !alive->get()->getf(caf::abstract_actor::is_terminated_flag)) return 0;
  return detach(link_seen_by(source)) != 0 ? source.id() : 0;
}

}  // namespace troupe::remoting
