// Getting in, being in, and being without a head: what a NodeMachine does between the events.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/membership/node_machine.hpp"

namespace troupe::membership {
namespace {

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

std::vector<NodeId> sorted_ids(const std::vector<Member>& members) {
  std::vector<NodeId> ids;
  ids.reserve(members.size());
  for (const auto& member : members) ids.push_back(member.node);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string text(const transport::Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(v6 ? "[{}]:{}" : "{}:{}"), address.host, address.port);
}

}  // namespace

/// Even a head is not believed blindly.
Status NodeMachine::check_view(const View& view) const {
  if (view.head != head_) return {Code::protocol_error, "a view with another head"};
  return check(view.members);
}

Status NodeMachine::check(const std::vector<Member>& members) const {
  const auto ids = sorted_ids(members);
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end())
    return {Code::protocol_error, "a list of nodes with one twice"};
  if (!std::binary_search(ids.begin(), ids.end(), head_))
    return {Code::protocol_error, "a list of nodes without the head"};
  return {};
}

// Getting in.

void NodeMachine::connect_to_head() {
  head_connect_ = ++last_connect_;
  ++attempts_;
  act(Connect{head_connect_, Plane::actors, head_address()});
}

/// The head's, while joining the one that was tried last.
const transport::Address& NodeMachine::head_address() const {
  if (taken_over_at_) return *taken_over_at_;
  const auto place = (attempts_ + options_.other_heads.size()) % (options_.other_heads.size() + 1);
  return place == 0 ? options_.head : options_.other_heads[place - 1];
}

/// From the beginning, if there is time; false if not.
bool NodeMachine::join_again(TimePoint now) {
  if (!options_.wait_for_head || now + kRetry >= deadline_) return false;
  for (const auto& link : {head_actors_, head_liveness_})
    if (link && links_.contains(*link)) act(Close{*link, {}});
  state_ = State::connecting;
  meshed_ = false;
  targets_.clear();
  earlier_.clear();
  head_actors_.reset();
  head_liveness_.reset();
  head_ = {};
  head_retry_at_ = now + kRetry;
  return true;
}

void NodeMachine::head_connected(Result<Link> result, TimePoint now) {
  if (!result.ok()) {
    const Error& error = result.error();
    const bool another = attempts_ <= options_.other_heads.size();
    // Of several addresses one that is wrong is as good as one where nobody is.
    const bool retry = error.code == Code::unavailable || !options_.other_heads.empty();
    if (retry && (another || join_again(now))) {
      head_retry_at_ = now + kRetry;
      return;
    }
    if (error.code == Code::unavailable || error.code == Code::deadline_exceeded)
      return go_out({error.code, fmt::format("no head answers at {}; start one with `troupe head` "
                                             "or check --head ({})",
                                             text(head_address()), error.message)});
    return go_out(error);
  }
  head_actors_ = *result;
  head_ = links_.at(*result);
  if (head_ == self_.node)
    return go_out({Code::invalid_argument,
                   fmt::format("{} is this node's own address; give the head's", head_text())});
  state_ = State::asking;
  act(Send{*head_actors_, Join{kProtocol, self_}});
}

void NodeMachine::make_target(Plane plane, const Member& member, TimePoint now) {
  const auto [it, added] = targets_.try_emplace(member.node, Target{plane, member, 0, now, {}});
  if (added) start(it->second);
}

void NodeMachine::start(Target& target) {
  target.connect = ++last_connect_;
  act(Connect{target.connect, target.plane,
              target.plane == Plane::actors ? target.member.address : target.member.liveness});
}

void NodeMachine::say_if_meshed() {
  if (state_ != State::meshing || meshed_ || !targets_.empty() || !head_liveness_) return;
  meshed_ = true;
  act(Send{*head_liveness_, Mesh{}});
}

// Being in.

void NodeMachine::follow(SharedView view, std::vector<Departure> departures, TimePoint now) {
  if (view->find(self_.node) == nullptr) {
    if (state_ == State::leaving) return;  // `released` follows
    return go_out(
        {Code::stale_generation,
         fmt::format("this node is not in generation {} of the cluster any more; start it "
                     "again to join as a new node",
                     view->generation)});
  }
  std::erase_if(to_drain_, [&](NodeId node) {
    const Member* member = view->find(node);
    return member == nullptr || member->draining;
  });
  const SharedView before = std::exchange(view_, std::move(view));
  if (before) drop_departed(*before, departures);
  for (const auto& member : view_->members)
    if (member.node != self_.node && !peers_.contains(member.node))
      missing_.try_emplace(member.node, now);
  act(NewView{view_, std::move(departures)});
}

/// Closes what leads to those who are gone, and sees that each is among the departures.
void NodeMachine::drop_departed(const View& before, std::vector<Departure>& departures) {
  const auto ids = sorted_ids(view_->members);
  for (const auto& member : before.members) {
    if (std::binary_search(ids.begin(), ids.end(), member.node)) continue;
    missing_.erase(member.node);
    const bool told = std::any_of(departures.begin(), departures.end(),
                                  [&](const Departure& d) { return d.node == member.node; });
    if (!told)
      departures.push_back(
          {member.node, member.name, {Code::unavailable, member.name + " is gone"}});
    if (const auto peer = peers_.find(member.node); peer != peers_.end())
      act(Close{peer->second,
                Error{Code::unavailable, fmt::format("{} is no member of generation {}",
                                                     member.name, view_->generation)}});
  }
}

void NodeMachine::suspect(NodeId node, const Error& reason) {
  if (head_liveness_) act(Send{*head_liveness_, Suspect{node, reason}});
}

/// A head that ended or put this node out says so on one connection while the other breaks.
void NodeMachine::head_link_lost(Link link, const Error& reason, TimePoint now) {
  if (link == head_actors_) head_actors_.reset();
  if (link == head_liveness_) head_liveness_.reset();
  if (joining()) {
    if (join_again(now)) return;
    return go_out({reason.code, fmt::format("{} closed the connection before this node was in: {}",
                                            head_text(), reason.message)});
  }
  if (headless_) return;
  const Error first = doubt_ ? doubt_->reason : reason;
  if (!head_actors_ && !head_liveness_) return head_lost(first, now);
  doubt_ = Doubt{first, now};
}

void NodeMachine::head_lost(const Error& reason, TimePoint now) {
  if (state_ == State::leaving)
    return go_out({Code::cancelled, "this node left; the head is gone"});
  if (timing_.headless > Duration::zero()) {
    headless_ = now;
    headless_why_ = reason;
    head_retry_at_ = now;
    doubt_.reset();
    return;
  }
  go_out({Code::unavailable, fmt::format("{} is lost ({}); the cluster is over for this node",
                                         head_text(), reason.message)});
}

/// The head that was there may be back, or only have been out of reach. A new one comes by itself.
void NodeMachine::look_for_head(TimePoint now) {
  if (!headless_ || state_ != State::in) return;
  if (now - *headless_ > timing_.headless)
    return go_out({Code::unavailable,
                   fmt::format("{} is lost ({}), and for {:.3g} s none took its place; the cluster "
                               "is over for this node",
                               head_text(), headless_why_.message, seconds(now - *headless_))});
  const Member* head = view_->find(head_);
  if (head_liveness_ || head_connect_ != 0 || now < head_retry_at_ || head == nullptr) return;
  head_connect_ = ++last_connect_;
  act(Connect{head_connect_, Plane::liveness, head->liveness});
}

void NodeMachine::head_found_again(Result<Link> result, TimePoint now) {
  head_retry_at_ = now + kRetry;
  if (!result.ok()) return;
  if (links_.at(*result) != head_ || head_liveness_) return act(Close{*result, {}});
  head_liveness_ = *result;  // says that this node was put out, or nothing
  head_heard_ = now;
  beat(now);
}

void NodeMachine::go_out(Error reason) {
  state_ = State::out;
  targets_.clear();
  missing_.clear();
  for (const auto& [link, node] : links_) act(Close{link, {}});
  act(Out{std::move(reason)});
}

void NodeMachine::protocol_broken(Link link, const std::string& what) {
  if (state_ == State::out || !links_.contains(link)) return;
  if (link == head_actors_ || link == head_liveness_) return head_broke(what);
  act(Close{link, Error{Code::protocol_error, "this node refuses this: " + what}});
}

/// Nobody else could say who is in.
void NodeMachine::head_broke(const std::string& what) {
  go_out({Code::protocol_error,
          fmt::format("{} broke the membership protocol: {}", head_text(), what)});
}

// Time.

void NodeMachine::beat(TimePoint) {
  if (!head_liveness_) return;
  act(Send{*head_liveness_,
           Heartbeat{view_ ? view_->generation : 0, ++sequence_, headless_.has_value()}});
}

void NodeMachine::watch_head(TimePoint now) {
  if (doubt_ && now - doubt_->since > timing_.limit / 2) return head_lost(doubt_->reason, now);
  if (head_liveness_ && !headless_ && now - head_heard_ > timing_.limit) {
    const Error silence{Code::deadline_exceeded, fmt::format("nothing heard of it for {:.3g} s",
                                                             seconds(now - head_heard_))};
    if (!joining()) return head_lost(silence, now);
    if (join_again(now)) return;
    go_out({Code::deadline_exceeded,
            fmt::format("{} went silent before this node was in", head_text())});
  }
}

void NodeMachine::watch_mesh(TimePoint now) {
  if (state_ != State::in || !head_liveness_) return;
  for (auto& [node, since] : missing_) {
    if (now - since < timing_.limit) continue;
    since = now;  // said again should the head not decide
    suspect(node, {Code::unavailable, "no connection from it"});
  }
}

Error NodeMachine::join_error() const {
  const double waited = seconds(options_.join_timeout);
  if (state_ == State::connecting)
    return {Code::deadline_exceeded,
            fmt::format("no head answers at {} within {:.3g} s; start one with `troupe head` or "
                        "check --head",
                        text(head_address()), waited)};
  for (const auto& [node, target] : targets_) {
    const auto& address =
        target.plane == Plane::actors ? target.member.address : target.member.liveness;
    return {Code::deadline_exceeded,
            fmt::format("cannot connect to {} at {} within {:.3g} s{}; check that nodes can reach "
                        "each other",
                        target.member.name, text(address), waited,
                        target.last_error.message.empty()
                            ? std::string()
                            : fmt::format(" ({})", target.last_error.message))};
  }
  return {
      Code::deadline_exceeded,
      fmt::format("{} did not let this node in within {:.3g} s; try again", head_text(), waited)};
}

std::string NodeMachine::head_text() const {
  return fmt::format("the head at {}", text(head_address()));
}

}  // namespace troupe::membership
