#include "runtime/membership/head_machine.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

namespace troupe::membership {

HeadMachine::HeadMachine(Options options, TimePoint now)
    : options_(std::move(options)), last_event_(now), next_tick_(now + options_.timing.period) {
  if (options_.last) {
    Takeover takeover{kProtocol, options_.term, options_.last->generation, options_.self,
                      options_.timing};
    succession_.emplace(
        std::move(takeover), options_.last, [this](Action action) { act(std::move(action)); }, now);
    succeed(now);
    return;
  }
  Member self = options_.self;
  self.joined = 1;
  auto first = std::make_shared<View>();
  first->generation = 1;
  first->head = self.node;
  first->members.push_back(std::move(self));
  view_ = first;
  act(NewView{view_, {}});
}

/// Once the members of the former head have followed, or did not: the first view of this one.
void HeadMachine::succeed(TimePoint now) {
  if (view_ || out_ || !succession_->done(now)) return;
  auto outcome = succession_->outcome();
  view_ = outcome.last;
  View next;
  next.head = options_.self.node;
  for (auto& follower : outcome.followers) {
    strangers_.erase(follower.actors);
    strangers_.erase(follower.liveness);
    Node node{follower.member, follower.actors, follower.liveness, true, now, {}, now, 0};
    node.order = ++last_order_;
    next.members.push_back(follower.member);
    nodes_.emplace(follower.member.node, std::move(node));
  }
  next.members.push_back(options_.self);
  next.members.back().joined = view_->generation + 1;
  for (const auto& departure : outcome.departed)
    remember(departure.node, {{Code::unavailable, departure.reason.message},
                              departure.reason.code == Code::cancelled});
  for (const auto& [former, link] : outcome.former) {
    const Gone gone{{Code::unavailable,
                     fmt::format("this node was put out of the cluster before generation {}; start "
                                 "it again to join as a new node",
                                 view_->generation + 1)}};
    if (link) act(Send{*link, Fenced{gone.reason}});
    remember(former, gone);
  }
  publish(std::move(next), outcome.departed, {});
  for (const auto& [link, join] : std::exchange(early_joins_, {}))
    if (const auto known = links_.find(link); known != links_.end())
      on(link, known->second, join, now);
}

/// What may come while there is no view yet.
void HeadMachine::received_early(Link link, NodeId from, const Message& message, TimePoint now) {
  if (const auto* followed = std::get_if<Followed>(&message)) {
    succession_->followed(link, from, *followed, now);
  } else if (const auto* heartbeat = std::get_if<Heartbeat>(&message)) {
    act(Send{link, Heartbeat{0, heartbeat->sequence}});
  } else if (std::holds_alternative<Leave>(message)) {
    act(Send{link, Released{}});
    succession_->left(from);
  } else if (const auto* join = std::get_if<Join>(&message)) {
    early_joins_.emplace_back(link, *join);
  }
  succeed(now);
}

// Events.

void HeadMachine::connected(Link link, NodeId node, TimePoint now) {
  awake(now);
  links_[link] = node;
  if (out_ || node == options_.self.node) return act(Close{link, {}});
  const auto it = nodes_.find(node);
  if (it != nodes_.end() && link.plane == Plane::liveness && !it->second.liveness) {
    it->second.liveness = link;
    it->second.heard = now;
    return;
  }
  strangers_[link] = now;
}

void HeadMachine::connect_done(ConnectId id, Result<Link> result, TimePoint now) {
  awake(now);
  if (!succession_) {
    if (result.ok()) act(Close{*result, {}});  // too late
    return;
  }
  const auto known = result.ok() ? links_.find(*result) : links_.end();
  if (result.ok() && known == links_.end())
    result = Error{Code::unavailable, "the connection closed again at once"};
  succession_->connect_done(id, result, result.ok() ? known->second : NodeId{}, now);
  if (!view_) succeed(now);
}

void HeadMachine::received(Link link, const Message& message, TimePoint now) {
  awake(now);
  const auto known = links_.find(link);
  if (known == links_.end() || out_) return;
  const NodeId from = known->second;
  if (const auto* superseded = std::get_if<Superseded>(&message)) {
    if (superseded->term <= options_.term) return act(Close{link, {}});
    return deposed({Code::unavailable, fmt::format("another head leads this cluster, with term {} "
                                                   "after this one's {}",
                                                   superseded->term, options_.term)},
                   now);
  }
  if (!view_) return received_early(link, from, message, now);
  const bool asks = std::holds_alternative<Join>(message);
  if (const auto gone = gone_.find(from); gone != gone_.end())
    return tell_gone(link, gone->second, asks);
  const auto node = nodes_.find(from);
  if (!asks && (node == nodes_.end() || !uses(node->second, link)))
    return breach(link, fmt::format("'{}' before it was asked in", name_of(message)), now);
  if (!asks) node->second.heard = now;
  std::visit([&](const auto& m) { on(link, from, m, now); }, message);
}

void HeadMachine::malformed(Link link, const Error& what, TimePoint now) {
  awake(now);
  breach(link, what.message, now);
}

void HeadMachine::lost(Link link, const Error& reason, TimePoint now) {
  awake(now);
  const auto known = links_.find(link);
  if (known == links_.end()) return;
  const NodeId from = known->second;
  links_.erase(known);
  strangers_.erase(link);
  if (succession_) succession_->lost(link, now);
  if (!view_) return succeed(now);
  const auto it = nodes_.find(from);
  if (it == nodes_.end() || !uses(it->second, link)) return;
  const Node& node = it->second;
  if (node.liveness == link) it->second.liveness.reset();
  if (ending_) {
    nodes_.erase(it);
    if (nodes_.empty()) finish();
  } else if (node.in) {
    remove({{from, {Code::unavailable, fmt::format("its connection broke ({})", reason.message)}}},
           now);
  } else {
    drop_candidate(from, {Code::unavailable, "the other connection broke: " + reason.message}, now);
  }
}

void HeadMachine::process_ended(NodeId node, TimePoint now) {
  awake(now);
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  if (it->second.in && !ending_)
    remove({{node,
             {Code::unavailable, fmt::format("its process {} ended", it->second.member.process)}}},
           now);
}

void HeadMachine::deposed(const Error& reason, TimePoint now) {
  awake(now);
  if (out_) return;
  nodes_.clear();
  out_ = true;
  for (const auto& [link, node] : links_) act(Close{link, {}});
  act(Out{reason});
}

void HeadMachine::tick(TimePoint now) {
  awake(now);
  next_tick_ = now + options_.timing.period;
  if (out_) return;
  if (succession_ && !ending_) {
    succession_->tick(now);
    if (succession_->over(now)) succession_.reset();
    if (!view_) return succeed(now);
  }
  if (ending_) {
    if (now - *ending_ >= options_.timing.limit) finish();
    return;
  }
  Leavers leavers;
  find_silent(now, leavers);
  find_unmeshed(now, leavers);
  if (!leavers.empty()) remove(leavers, now);
  drop_slow_candidates(now);
  close_strangers(now);
}

void HeadMachine::leave(TimePoint now) {
  awake(now);
  if (ending_) return;
  ending_ = now;
  for (const auto& [id, node] : nodes_)
    send(node, Ended{{Code::cancelled, "the head ended the cluster"}});
  if (nodes_.empty()) finish();
}

void HeadMachine::drain(NodeId node, TimePoint now) {
  awake(now);
  const auto it = nodes_.find(node);
  if (ending_ || !view_ || it == nodes_.end() || !it->second.in || it->second.member.draining)
    return;
  it->second.member.draining = true;
  View next = *view_;
  for (auto& member : next.members)
    if (member.node == node) member.draining = true;
  publish(std::move(next), {}, {});
}

/// If this process itself was stopped for a while, nothing that was not heard in it means anything.
void HeadMachine::awake(TimePoint now) {
  if (now - last_event_ > options_.timing.limit / 2) {
    for (auto& [id, node] : nodes_) {
      node.heard = now;
      node.deaf.reset();
    }
    for (auto& [pair, since] : unmeshed_) since = now;
  }
  last_event_ = std::max(last_event_, now);
}

// Messages.

void HeadMachine::on(Link link, NodeId from, const Join& join, TimePoint now) {
  if (const auto status = may_join(from, join); !status.ok()) {
    act(Send{link, Refused{status.error()}});
    return act(Close{link, {}});
  }
  if (link.plane != Plane::actors)
    return breach(link, "'join' on the connection for liveness", now);
  strangers_.erase(link);
  Node node{join.member, link, std::nullopt, false, now, {}, now, 0};
  node.member.name = unique_name(join.member.name);
  node.member.joined = 0;
  // Its other connection may have come first.
  for (const auto& [other, owner] : links_)
    if (owner == from && other.plane == Plane::liveness) node.liveness = other;
  if (node.liveness) strangers_.erase(*node.liveness);
  node.order = ++last_order_;
  Welcome welcome{node.member, view_->members, options_.timing, options_.term};
  for (const auto& [id, other] : nodes_)
    if (!other.in) welcome.earlier.push_back(other.member);
  act(Send{link, std::move(welcome)});
  nodes_.emplace(from, std::move(node));
}

/// It is connected to all earlier ones; and a later one that is in is connected to it, for that one
/// has said so too.
void HeadMachine::on(Link link, NodeId from, const Mesh&, TimePoint now) {
  Node& node = nodes_.at(from);
  if (node.in || link.plane != Plane::liveness)
    return breach(link, "'mesh' for what it was not asked", now);
  if (!ending_) admit(node, now);
}

void HeadMachine::on(Link, NodeId from, const Leave&, TimePoint now) {
  if (ending_) return;
  if (nodes_.at(from).in) return remove({{from, {Code::cancelled, "it left"}}}, now);
  drop_candidate(from, {Code::cancelled, "left before it was in"}, now);
}

void HeadMachine::on(Link link, NodeId from, const Heartbeat& heartbeat, TimePoint now) {
  auto& deaf = nodes_.at(from).deaf;
  if (!heartbeat.deaf)
    deaf.reset();
  else if (!deaf)
    deaf = now;
  act(Send{link, Heartbeat{view_->generation, heartbeat.sequence}});
}

void HeadMachine::on(Link, NodeId from, const Suspect& suspect, TimePoint now) {
  const auto other = nodes_.find(suspect.node);
  // Mostly it is about somebody whose end was noticed here too.
  if (other == nodes_.end() || !other->second.in || !nodes_.at(from).in || suspect.node == from)
    return;
  unmeshed_.try_emplace(std::minmax(from, suspect.node), now);
}

void HeadMachine::on(Link, NodeId, const Drain& wish, TimePoint now) {
  drain(wish.node, now);
}

template <class Other>
void HeadMachine::on(Link link, NodeId, const Other& other, TimePoint now) {
  breach(link, fmt::format("'{}', which only a head sends", name_of(other)), now);
}

Status HeadMachine::may_join(NodeId from, const Join& join) const {
  const Member& member = join.member;
  if (join.protocol != kProtocol)
    return {Code::version_mismatch,
            fmt::format("this node speaks membership protocol {}, the head {}; update the older of "
                        "the two programs",
                        join.protocol, kProtocol)};
  if (ending_) return {Code::cancelled, "the head is ending the cluster"};
  if (member.node != from)
    return {Code::protocol_error,
            fmt::format("node {} asked to join as {}", to_string(from), to_string(member.node))};
  if (nodes_.contains(from))
    return {Code::already_exists,
            fmt::format("node id {} is in the cluster already; a node draws a new id at each start",
                        to_string(from))};
  if (nodes_.size() + 1 >= options_.max_nodes)
    return {Code::resource_exhausted,
            fmt::format("the cluster has {} nodes, and no room for more", nodes_.size() + 1)};
  if (member.address.host.empty() || member.address.port == 0 || member.liveness.host.empty() ||
      member.liveness.port == 0)
    return {Code::invalid_argument,
            fmt::format("node '{}' does not say where it listens", member.name)};
  return {};
}

/// "node", then "node-2", "node-3".
std::string HeadMachine::unique_name(const std::string& wish) const {
  std::set<std::string_view> taken{options_.self.name};
  for (const auto& [id, node] : nodes_) taken.insert(node.member.name);
  const std::string base = wish.empty() ? "node" : wish.substr(0, kMaxNameBytes - 8);
  std::string name = base;
  for (std::size_t number = 2; taken.contains(name); ++number)
    name = fmt::format("{}-{}", base, number);
  return name;
}

}  // namespace troupe::membership
