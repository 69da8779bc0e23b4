#include "runtime/membership/node_machine.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace troupe::membership {
namespace {

constexpr Duration kRetry = std::chrono::milliseconds(200);

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

std::string text(const transport::Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(v6 ? "[{}]:{}" : "{}:{}"), address.host, address.port);
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
    if (error.code == Code::unavailable && (another || join_again(now))) {
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
