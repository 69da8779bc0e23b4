#include "runtime/membership/node_machine.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace troupe::membership {
namespace {

/// The view that follows; null if the amendment is one of another.
SharedView amend(const View& view, const Amendment& amendment) {
  if (amendment.generation != view.generation + 1) return nullptr;
  View next = view;
  next.generation = amendment.generation;
  for (const auto& departure : amendment.departures)
    if (std::erase_if(next.members, [&](const Member& m) { return m.node == departure.node; }) == 0)
      return nullptr;
  for (const auto& member : amendment.changed) {
    const auto same = [&](const Member& m) { return m.node == member.node; };
    const auto at = std::find_if(next.members.begin(), next.members.end(), same);
    if (at != next.members.end())
      *at = member;
    else
      next.members.push_back(member);
  }
  if (next.members.size() != amendment.members) return nullptr;
  return std::make_shared<const View>(std::move(next));
}

}  // namespace

NodeMachine::NodeMachine(Options options, TimePoint now)
    : options_(std::move(options)),
      timing_(options_.timing),
      self_(options_.self),
      head_heard_(now),
      last_event_(now),
      next_tick_(now + timing_.period),
      deadline_(now + options_.join_timeout) {
  connect_to_head();
}

// Events.

void NodeMachine::connected(Link link, NodeId node, TimePoint now) {
  awake(now);
  links_[link] = node;
  if (state_ == State::out) return act(Close{link, {}});
  if (link.plane == Plane::actors && peers_.try_emplace(node, link).second) missing_.erase(node);
  if (link.plane == Plane::actors && node == head_ && !joining()) head_actors_ = link;
}

void NodeMachine::connect_done(ConnectId id, Result<Link> result, TimePoint now) {
  awake(now);
  if (state_ == State::out) return;
  if (result.ok() && !links_.contains(*result))
    result = Error{Code::unavailable, "the connection closed again at once"};
  if (id == head_connect_) {
    head_connect_ = 0;
    return joining() ? head_connected(std::move(result), now)
                     : head_found_again(std::move(result), now);
  }
  const auto it = std::find_if(targets_.begin(), targets_.end(),
                               [id](const auto& entry) { return entry.second.connect == id; });
  if (it == targets_.end()) {  // for somebody who is gone meanwhile
    if (result.ok()) act(Close{*result, {}});
    return;
  }
  Target& target = it->second;
  target.connect = 0;
  if (result.ok() && links_.at(*result) != it->first) {
    act(Close{*result, {}});
    result = Error{Code::unavailable, "another node answers there"};
  }
  if (!result.ok()) {
    target.last_error = result.error();
    target.retry_at = now + kRetry;
    return;
  }
  if (target.plane == Plane::liveness) {
    head_liveness_ = *result;
    head_heard_ = now;
  }
  targets_.erase(it);
  say_if_meshed();
}

void NodeMachine::received(Link link, const Message& message, TimePoint now) {
  awake(now);
  const auto known = links_.find(link);
  if (known == links_.end() || state_ == State::out) return;
  if (const auto* takeover = std::get_if<Takeover>(&message))
    return on_takeover(link, *takeover, now);
  if (former_heads_.contains(known->second)) {
    act(Send{link, Superseded{term_}});
    return act(Close{link, {}});
  }
  if (link != head_actors_ && link != head_liveness_)
    return protocol_broken(link,
                           fmt::format("'{}' from one who is not the head", name_of(message)));
  if (link == head_liveness_) {
    head_heard_ = now;
    headless_.reset();
  }
  std::visit([&](const auto& m) { on(m, now); }, message);
}

void NodeMachine::malformed(Link link, const Error& what, TimePoint now) {
  awake(now);
  protocol_broken(link, what.message);
}

void NodeMachine::lost(Link link, const Error& reason, TimePoint now) {
  awake(now);
  const auto known = links_.find(link);
  if (known == links_.end()) return;
  const NodeId node = known->second;
  links_.erase(known);
  const auto peer = peers_.find(node);
  const bool was_peer = peer != peers_.end() && peer->second == link;
  if (was_peer) peers_.erase(peer);
  if (state_ == State::out) return;
  if (link == head_actors_ || link == head_liveness_) return head_link_lost(link, reason, now);
  if (!was_peer) return;
  if (state_ == State::in && view_->find(node) != nullptr) return suspect(node, reason);
  if (state_ != State::meshing) return;
  // Once more, unless the head knows better.
  if (const auto it = earlier_.find(node); it != earlier_.end())
    make_target(Plane::actors, it->second, now);
}

void NodeMachine::tick(TimePoint now) {
  awake(now);
  next_tick_ = now + timing_.period;
  if (state_ == State::out) return;
  if (now >= deadline_ && joining()) return go_out(join_error());
  if (state_ == State::connecting && head_connect_ == 0 && now >= head_retry_at_) connect_to_head();
  if (now >= deadline_ && state_ == State::leaving)
    return go_out({Code::cancelled, "this node left; the head did not answer"});
  for (auto& [node, target] : targets_)
    if (target.connect == 0 && now >= target.retry_at) start(target);
  beat(now);
  watch_mesh(now);
  watch_head(now);
  look_for_head(now);
}

void NodeMachine::leave(TimePoint now) {
  awake(now);
  if (state_ == State::out || state_ == State::leaving) return;
  if (state_ != State::in) {
    if (head_liveness_) act(Send{*head_liveness_, Leave{}});
    return go_out({Code::cancelled, "this node left before it was in"});
  }
  state_ = State::leaving;
  deadline_ = now + timing_.limit;
  if (head_liveness_) act(Send{*head_liveness_, Leave{}});
}

void NodeMachine::drain(NodeId node, TimePoint now) {
  awake(now);
  if (state_ != State::in) return;
  to_drain_.insert(node);
  if (head_liveness_) act(Send{*head_liveness_, Drain{node}});
}

/// If this process itself was stopped for a while, the head gets time to speak: if it has put this
/// node out, that is already on its way.
void NodeMachine::awake(TimePoint now) {
  if (now - last_event_ > timing_.limit / 2) {
    head_heard_ = now;
    for (auto& [node, since] : missing_) since = now;
    if (doubt_) doubt_->since = now;
  }
  last_event_ = std::max(last_event_, now);
}

// Messages of the head.

void NodeMachine::on(const Welcome& welcome, TimePoint now) {
  if (state_ != State::asking) return head_broke("'welcome' twice");
  if (const auto status = check(welcome.earlier); !status.ok())
    return head_broke(status.error().message);
  self_.name = welcome.you.name;
  timing_ = welcome.timing;
  term_ = welcome.term;
  state_ = State::meshing;
  for (const auto& member : welcome.earlier) {
    if (member.node == self_.node) continue;
    if (member.node == head_) {
      make_target(Plane::liveness, member, now);
      continue;
    }
    earlier_.emplace(member.node, member);
    if (!peers_.contains(member.node)) make_target(Plane::actors, member, now);
  }
}

void NodeMachine::on(const Forget& forget, TimePoint) {
  if (state_ != State::meshing || forget.node == head_) return;
  earlier_.erase(forget.node);
  targets_.erase(forget.node);
  if (const auto peer = peers_.find(forget.node); peer != peers_.end())
    act(Close{peer->second, Error{Code::unavailable, "the head says that this node is gone"}});
  say_if_meshed();
}

void NodeMachine::on(const Joined& joined, TimePoint now) {
  if (state_ != State::meshing) return head_broke("'joined' at the wrong time");
  if (const auto status = check_view(*joined.view); !status.ok())
    return head_broke(status.error().message);
  if (joined.view->find(self_.node) == nullptr) return head_broke("a first view without this node");
  state_ = State::in;
  targets_.clear();
  earlier_.clear();
  follow(joined.view, {}, now);
}

void NodeMachine::on(const Refused& refused, TimePoint) {
  go_out({refused.reason.code,
          fmt::format("{} refused this node: {}", head_text(), refused.reason.message)});
}

void NodeMachine::on(const ViewChanged& changed, TimePoint now) {
  if (const auto status = check_view(*changed.view); !status.ok())
    return head_broke(status.error().message);
  if (state_ != State::in && state_ != State::leaving) return head_broke("'view' before 'joined'");
  if (changed.view->generation > view_->generation) follow(changed.view, changed.departures, now);
}

void NodeMachine::on(const Amended& amended, TimePoint now) {
  if (state_ != State::in && state_ != State::leaving)
    return head_broke("'amended' before 'joined'");
  const Amendment& amendment = *amended.amendment;
  if (amendment.generation <= view_->generation) return;
  auto next = amend(*view_, amendment);
  if (!next) return head_broke("an amendment that does not fit this node's view");
  if (const auto status = check_view(*next); !status.ok())
    return head_broke(status.error().message);
  follow(std::move(next), amendment.departures, now);
}

void NodeMachine::on(const Released&, TimePoint) {
  go_out({Code::cancelled, "this node left the cluster"});
}

void NodeMachine::on(const Heartbeat&, TimePoint) {}  // heard, that is all

void NodeMachine::on(const Fenced& fenced, TimePoint) {
  if (state_ == State::leaving) return go_out({Code::cancelled, "this node left the cluster"});
  go_out({Code::stale_generation, fenced.reason.message});
}

void NodeMachine::on(const Ended& ended, TimePoint) {
  go_out({Code::cancelled, ended.reason.message});
}

/// Another head says that it leads now. The higher term counts, whatever became of the former one.
void NodeMachine::on_takeover(Link link, const Takeover& takeover, TimePoint now) {
  const NodeId from = links_.at(link);
  if (link.plane != Plane::liveness || takeover.head.node != from || takeover.protocol != kProtocol)
    return protocol_broken(link, "'takeover' by one who cannot lead here");
  if (joining()) return act(Close{link, Error{Code::unavailable, "this node is not in yet"}});
  if (takeover.term <= term_) {
    act(Send{link, Superseded{term_}});
    return act(Close{link, {}});
  }
  for (const auto& former : {head_liveness_, head_actors_})
    if (former && links_.contains(*former)) {
      act(Send{*former, Superseded{takeover.term}});
      act(Close{*former, {}});
    }
  former_heads_.insert(std::exchange(head_, from));
  term_ = takeover.term;
  taken_over_at_ = takeover.head.address;
  timing_ = takeover.timing;
  head_liveness_ = link;
  const auto peer = peers_.find(from);
  head_actors_ = peer != peers_.end() ? std::optional(peer->second) : std::nullopt;
  head_heard_ = now;
  headless_.reset();
  doubt_.reset();
  head_connect_ = 0;
  act(Send{link, Followed{term_, view_->generation > takeover.generation ? view_ : nullptr}});
  for (const NodeId node : to_drain_) act(Send{link, Drain{node}});
  if (state_ == State::leaving) act(Send{link, Leave{}});
}

template <class Other>
void NodeMachine::on(const Other& other, TimePoint) {
  head_broke(fmt::format("'{}', which only a node sends", name_of(other)));
}

}  // namespace troupe::membership
