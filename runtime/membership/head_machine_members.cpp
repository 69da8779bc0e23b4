// Who is a member: the decisions of a HeadMachine, and what it tells of them.
#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "runtime/membership/head_machine.hpp"

namespace troupe::membership {
namespace {

constexpr std::size_t kMaxGone = 4096;
/// How long a connection may stay that belongs to nobody, and a candidate take to get in.
constexpr Duration kStrangerTime = std::chrono::seconds(30);
constexpr Duration kCandidateTime = std::chrono::minutes(2);
/// How long a candidate may take to connect for liveness; others wait for it.
constexpr Duration kLivenessTime = std::chrono::seconds(5);

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

/// Members of `next` that are new or were different. Those who stay keep their order.
std::vector<Member> changed(const View& before, const View& next) {
  std::vector<Member> result;
  auto old = before.members.begin();
  for (const auto& member : next.members) {
    const auto same = [&](const Member& m) { return m.node == member.node; };
    const auto at = std::find_if(old, before.members.end(), same);
    if (at == before.members.end() || *at != member) result.push_back(member);
    if (at != before.members.end()) old = at + 1;
  }
  return result;
}

}  // namespace

void HeadMachine::admit(Node& node, TimePoint now) {
  node.in = true;
  node.heard = now;
  node.member.joined = view_->generation + 1;
  View next = *view_;
  next.members.push_back(node.member);
  publish(std::move(next), {}, node.member.node);
}

void HeadMachine::drop_candidate(NodeId id, const Error& reason, TimePoint now) {
  const auto it = nodes_.find(id);
  const Node node = std::move(it->second);
  nodes_.erase(it);
  const auto close = [&](Link link) {
    if (!links_.contains(link)) return;
    strangers_[link] = now;
    act(Close{link, reason});
  };
  close(node.actors);
  if (node.liveness) close(*node.liveness);
  forget(id);
}

/// The one place where members go: all of `leavers` in one new generation.
void HeadMachine::remove(const Leavers& leavers, TimePoint now) {
  View next = *view_;
  std::vector<Departure> departures;
  for (const auto& [id, why] : leavers) {
    const auto it = nodes_.find(id);
    if (it == nodes_.end() || !it->second.in) continue;
    const Node node = std::move(it->second);
    nodes_.erase(it);
    std::erase_if(next.members, [id = id](const Member& m) { return m.node == id; });
    std::erase_if(unmeshed_, [id = id](const auto& entry) {
      return entry.first.first == id || entry.first.second == id;
    });
    depart(node, why, now);
    forget(id);
    const auto sentence = why.code == Code::cancelled
                              ? fmt::format("{} left the cluster", node.member.name)
                              : fmt::format("{} is gone: {}", node.member.name, why.message);
    departures.push_back({id, node.member.name, {why.code, sentence}});
  }
  if (!departures.empty()) publish(std::move(next), departures, {});
}

/// Tells a node that it is out, and remembers it.
void HeadMachine::depart(const Node& node, const Error& why, TimePoint now) {
  Gone gone;
  gone.left = why.code == Code::cancelled;
  gone.reason = {Code::unavailable,
                 fmt::format("this node was put out of the cluster after generation {}: {}; start "
                             "it again to join as a new node",
                             view_->generation, why.message)};
  if (node.liveness) strangers_[*node.liveness] = now;
  if (links_.contains(node.actors)) strangers_[node.actors] = now;
  if (gone.left) {
    send(node, Released{});
  } else if (node.liveness) {
    act(Send{*node.liveness, Fenced{gone.reason}});
    act(Close{node.actors, gone.reason});
  } else {
    act(Send{node.actors, Fenced{gone.reason}});
    act(Close{node.actors, {}});
  }
  remember(node.member.node, std::move(gone));
}

void HeadMachine::remember(NodeId node, Gone gone) {
  gone_[node] = std::move(gone);
  gone_order_.push_back(node);
  if (gone_order_.size() > kMaxGone) {
    gone_.erase(gone_order_.front());
    gone_order_.pop_front();
  }
}

/// Somebody who is out talks again.
void HeadMachine::tell_gone(Link link, const Gone& gone, bool asks) {
  if (gone.left && !asks) return;  // sent before it was released
  if (asks)
    act(Send{link, Refused{{Code::already_exists,
                            "this node id was in the cluster before; a node draws a new id at each "
                            "start"}}});
  else
    act(Send{link, Fenced{gone.reason}});
  act(Close{link, {}});
}

/// The other side of `link` broke the protocol.
void HeadMachine::breach(Link link, const std::string& what, TimePoint now) {
  const auto known = links_.find(link);
  if (known == links_.end() || out_) return;
  const Error reason{Code::protocol_error, "the head refuses this: " + what};
  const auto it = nodes_.find(known->second);
  if (it == nodes_.end() || !uses(it->second, link)) return act(Close{link, reason});
  if (!it->second.in) return drop_candidate(it->first, reason, now);
  if (ending_) return act(Close{link, reason});
  remove({{it->first, {Code::protocol_error, "it broke the membership protocol: " + what}}}, now);
}

void HeadMachine::publish(View next, const std::vector<Departure>& departures, NodeId joiner) {
  const SharedView before = view_;
  next.generation = before->generation + 1;
  view_ = std::make_shared<const View>(std::move(next));
  const auto amended = std::make_shared<const Amendment>(
      Amendment{view_->generation, changed(*before, *view_), departures, view_->members.size()});
  for (auto& [id, node] : nodes_) {
    if (!node.in) continue;
    if (id == joiner)
      send(node, Joined{view_});
    else if (node.told == before->generation)
      send(node, Amended{amended});
    else
      send(node, ViewChanged{view_, departures});
    node.told = view_->generation;
  }
  act(NewView{view_, departures});
}

/// Nobody needs to connect to `gone` any more.
void HeadMachine::forget(NodeId gone) {
  for (const auto& [id, node] : nodes_)
    if (!node.in) send(node, Forget{gone});
}

// Small things.

bool HeadMachine::uses(const Node& node, Link link) const {
  return node.actors == link || node.liveness == link;
}

void HeadMachine::send(const Node& node, Message message) {
  act(Send{node.liveness.value_or(node.actors), std::move(message)});
}

void HeadMachine::find_silent(TimePoint now, Leavers& leavers) {
  const Duration limit = options_.timing.limit;
  for (const auto& [id, node] : nodes_) {
    if (!node.in) continue;
    if (now - node.heard > limit)
      leavers.push_back({id,
                         {Code::unavailable, fmt::format("it was not heard of for {:.3g} s",
                                                         seconds(now - node.heard))}});
    else if (node.deaf && now - *node.deaf > limit)
      leavers.push_back({id,
                         {Code::unavailable, fmt::format("it has not heard the head for {:.3g} s",
                                                         seconds(now - *node.deaf + limit))}});
  }
}

/// Two members without a connection cannot work together. One goes: the one that has more such
/// pairs, else the younger.
void HeadMachine::find_unmeshed(TimePoint now, Leavers& leavers) {
  std::map<NodeId, std::size_t> pairs_of;
  for (const auto& [pair, since] : unmeshed_) {
    ++pairs_of[pair.first];
    ++pairs_of[pair.second];
  }
  const auto worth = [&](NodeId id) {
    return std::pair(~pairs_of[id], ~nodes_.at(id).member.joined);
  };
  const auto leaves = [&](NodeId id) {
    return std::any_of(leavers.begin(), leavers.end(),
                       [id](const auto& x) { return x.first == id; });
  };
  for (const auto& [pair, since] : unmeshed_) {
    if (now - since < options_.timing.limit || leaves(pair.first) || leaves(pair.second)) continue;
    const bool first_goes = worth(pair.first) < worth(pair.second);
    const NodeId loser = first_goes ? pair.first : pair.second;
    const NodeId other = first_goes ? pair.second : pair.first;
    leavers.push_back({loser,
                       {Code::unavailable,
                        fmt::format("it has no connection to {}", nodes_.at(other).member.name)}});
  }
}

void HeadMachine::drop_slow_candidates(TimePoint now) {
  std::vector<NodeId> slow;
  for (const auto& [id, node] : nodes_) {
    const Duration silence = node.liveness ? options_.timing.limit : kLivenessTime;
    if (!node.in && (now - node.came > kCandidateTime || now - node.heard > silence))
      slow.push_back(id);
  }
  for (const NodeId id : slow)
    drop_candidate(id, {Code::deadline_exceeded, "the node did not get ready to join in time"},
                   now);
}

void HeadMachine::close_strangers(TimePoint now) {
  std::vector<Link> old;
  for (const auto& [link, since] : strangers_)
    if (now - since > kStrangerTime) old.push_back(link);
  for (const Link link : old) {
    strangers_[link] = now;  // asks again should the transport take its time
    act(Close{link, Error{Code::deadline_exceeded, "this connection belongs to no member"}});
  }
}

void HeadMachine::finish() {
  if (out_) return;
  out_ = true;
  for (const auto& [link, node] : links_) act(Close{link, {}});
  act(Out{{Code::cancelled, "the head ended the cluster"}});
}

}  // namespace troupe::membership
