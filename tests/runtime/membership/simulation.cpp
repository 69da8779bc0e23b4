#include "tests/runtime/membership/simulation.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "runtime/membership/codec.hpp"

namespace troupe::membership {
namespace {

constexpr std::uint16_t kFirstPort = 1000;

/// Two ports a process, wrapped into the port and the host's name.
transport::Address address_of(std::size_t process, Plane plane) {
  return {fmt::format("h{}", process),
          static_cast<std::uint16_t>(kFirstPort + (plane == Plane::liveness ? 1 : 0))};
}

std::size_t process_at(const transport::Address& address) {
  return std::stoul(address.host.substr(1));
}

}  // namespace

Simulation::Simulation(std::uint64_t seed, Options options) : options_(options), random_(seed) {}

Member Simulation::member_of(Process p, const std::string& name) const {
  Member member;
  member.node = procs_[p].id;
  member.name = name;
  member.address = address_of(p, Plane::actors);
  member.liveness = address_of(p, Plane::liveness);
  member.host = "host";
  member.process = static_cast<std::uint32_t>(p);
  member.slots = 1;
  return member;
}

Simulation::Process Simulation::start_head() {
  const Process p = procs_.size();
  // A store has one leader: the one before learns that it lost it, if it can, and a moment later.
  if (!heads_.empty())
    at(Duration(static_cast<Duration::rep>(random_() % 50'000'000)),
       [this, former = heads_.back()] { depose(former); });
  auto& proc = procs_.emplace_back();
  proc.id = {random_(), p + 1};
  proc.head = true;
  proc.machine =
      std::make_unique<HeadMachine>(HeadMachine::Options{member_of(p, "head"), options_.timing,
                                                         kMaxMembers, heads_.size() + 1, stored_},
                                    now_);
  heads_.push_back(p);
  push({proc.machine->next_tick(), 0, Event::Kind::tick, 0, {}, p});
  perform(p);
  return p;
}

Simulation::Process Simulation::start_node(std::string name) {
  const Process p = procs_.size();
  auto& proc = procs_.emplace_back();
  proc.id = {random_(), p + 1};
  NodeMachine::Options options;
  options.self = member_of(p, name);
  options.head = address_of(heads_.back(), Plane::actors);
  options.timing = options_.timing;
  options.join_timeout = options_.join_timeout;
  options.wait_for_head = options_.timing.headless > Duration::zero();
  proc.machine = std::make_unique<NodeMachine>(std::move(options), now_);
  push({proc.machine->next_tick(), 0, Event::Kind::tick, 0, {}, p});
  perform(p);
  return p;
}

Simulation::Process Simulation::start_cluster(std::size_t nodes) {
  auto& former = procs_.emplace_back();
  former.id = {random_(), 1};
  former.head = true;
  heads_.push_back(0);
  View view{1, former.id, {member_of(0, "head")}};
  for (std::size_t i = 0; i < nodes; ++i) {
    const Process p = start_node();
    view.members.push_back(member_of(p, fmt::format("node-{}", p)));
    view.members.back().joined = 1;
  }
  stored_ = views_[{view.head, 1}] = std::make_shared<const View>(view);
  std::erase_if(queue_, [](const Event& e) { return e.kind == Event::Kind::arrive; });
  std::make_heap(queue_.begin(), queue_.end(), Later{});
  for (Process p = 1; p <= nodes; ++p) let_in(p, stored_);
  for (Process p = 2; p <= nodes; ++p)
    for (Process q = 1; q < p; ++q)
      procs_[p].machine->connected(connect_at_once(Plane::actors, p, q), procs_[q].id, now_);
  kill(0);
  return start_head();
}

/// What the former head, which has no machine, would have said to a node that wants in.
void Simulation::let_in(Process p, const SharedView& view) {
  Machine& machine = *procs_[p].machine;
  const auto connected = [&](ConnectId id, Plane plane) {
    const Link link = connect_at_once(plane, p, 0);
    machine.connected(link, procs_[0].id, now_);
    machine.connect_done(id, link, now_);
    return link;
  };
  const Link link = connected(1, Plane::actors);
  machine.received(link, Welcome{view->members[p], {view->members[0]}, options_.timing, 1}, now_);
  const Link liveness = connected(2, Plane::liveness);
  machine.received(liveness, Joined{view}, now_);
  for (auto& action : machine.take_actions())
    if (auto* next = std::get_if<NewView>(&action)) perform(p, *next);
}

/// `from` still has to be told.
Link Simulation::connect_at_once(Plane plane, Process from, Process to) {
  const std::size_t c = connections_.size();
  Connection& connection = connections_.emplace_back();
  connection.plane = plane;
  connection.ends[0] = from;
  connection.ends[1] = to;
  connection.open[0] = connection.open[1] = true;
  const Link link{plane, c + 1};
  if (procs_[to].machine) procs_[to].machine->connected(link, procs_[from].id, now_);
  return link;
}

void Simulation::depose(Process p) {
  Proc& proc = procs_[p];
  if (!proc.alive || proc.out) return;
  if (proc.paused) return at(std::chrono::milliseconds(10), [this, p] { depose(p); });
  static_cast<HeadMachine&>(*proc.machine)
      .deposed({Code::unavailable, "the store has another leader"}, now_);
  perform(p);
}

// Faults.

void Simulation::kill(Process p) {
  Proc& proc = procs_[p];
  if (!proc.alive) return;
  proc.alive = false;
  proc.deferred.clear();
  for (std::size_t c = 0; c < connections_.size(); ++c) {
    Connection& connection = connections_[c];
    if (connection.ends[0] != p && connection.ends[1] != p) continue;
    const unsigned mine = side_of(connection, p);
    connection.open[mine] = false;
    connection.closing[mine] = true;
    // What was not yet on the wire never gets there.
    auto& out = connection.toward[1 - mine];
    if (!out.empty() && !std::holds_alternative<Established>(out.back()))
      out.resize(out.size() - random_() % 2);
    enqueue(c, 1 - mine, Reset{{Code::unavailable, "connection reset"}});
  }
}

void Simulation::pause(Process p) {
  procs_[p].paused = true;
}

void Simulation::resume(Process p) {
  Proc& proc = procs_[p];
  if (!proc.paused) return;
  proc.paused = false;
  for (auto& event : std::exchange(proc.deferred, {})) {
    event.at = now_ + Duration(random_() % 1'000'000);
    push(event);
  }
}

void Simulation::cut(Process a, Process b) {
  if (a == b) return;
  cut_one_way(a, b);
  cut_one_way(b, a);
}

void Simulation::heal(Process a, Process b) {
  cuts_.erase({a, b});
  cuts_.erase({b, a});
}

void Simulation::heal_all() {
  cuts_.clear();
}

void Simulation::reset_connection(Process a, Process b) {
  for (std::size_t c = 0; c < connections_.size(); ++c) {
    Connection& connection = connections_[c];
    const bool between = (connection.ends[0] == a && connection.ends[1] == b) ||
                         (connection.ends[0] == b && connection.ends[1] == a);
    if (!between || connection.plane != Plane::actors) continue;
    for (unsigned side : {0u, 1u})
      if (!connection.closing[side]) {
        connection.closing[side] = true;
        connection.toward[side].clear();
        enqueue(c, side, Reset{{Code::unavailable, "connection reset"}});
      }
  }
}

void Simulation::leave(Process p) {
  if (!procs_[p].alive || procs_[p].paused) return;
  procs_[p].machine->leave(now_);
  perform(p);
}

void Simulation::drain(Process p, Process node) {
  if (!procs_[p].alive || procs_[p].paused) return;
  procs_[p].machine->drain(procs_[node].id, now_);
  perform(p);
}

void Simulation::inject(Process from, Process to, std::optional<Message> message) {
  for (std::size_t c = 0; c < connections_.size(); ++c) {
    const Connection& connection = connections_[c];
    const unsigned side = side_of(connection, to);
    if (connection.ends[side] != to || connection.ends[1 - side] != from) continue;
    if (connection.closing[1 - side]) continue;
    if (message)
      enqueue(c, side, *message);
    else
      enqueue(c, side, Garbage{});
    return;
  }
}

// Running.

void Simulation::at(Duration from_now, std::function<void()> what) {
  calls_.push_back(std::move(what));
  push({now_ + from_now, 0, Event::Kind::call, 0, {}, 0, calls_.size() - 1});
}

void Simulation::run_for(Duration how_long) {
  const TimePoint until = now_ + how_long;
  while (!queue_.empty() && queue_.front().at < until && failure_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), Later{});
    const Event event = queue_.back();
    queue_.pop_back();
    now_ = std::max(now_, event.at);
    ++events_;
    handle(event);
  }
  now_ = until;
}

Duration Simulation::delay() {
  if (options_.delay) return *options_.delay;
  const auto most = static_cast<std::uint64_t>(options_.max_delay.count());
  // Mostly short, now and then long.
  const std::uint64_t bits = random_();
  return Duration(1 + (bits >> 8) % (bits % 8 == 0 ? most : most / 50 + 1));
}

void Simulation::push(Event event) {
  event.order = ++order_;
  queue_.push_back(event);
  std::push_heap(queue_.begin(), queue_.end(), Later{});
}

void Simulation::handle(Event event) {
  if (event.kind == Event::Kind::call) {
    const auto what = std::move(calls_[event.other]);
    return what();
  }
  Proc& proc = procs_[event.process];
  if (event.kind == Event::Kind::arrive) return arrive(event);
  if (!proc.alive) return;
  if (proc.paused) return proc.deferred.push_back(event);
  switch (event.kind) {
    case Event::Kind::deliver:
      deliver(event);
      break;
    case Event::Kind::tick:
      proc.machine->tick(now_);
      push({std::max(proc.machine->next_tick(), now_ + Duration(1)),
            0,
            Event::Kind::tick,
            0,
            {},
            event.process});
      break;
    case Event::Kind::refused:
      proc.machine->connect_done(event.connect, Error{Code::unavailable, "connection refused"},
                                 now_);
      break;
    case Event::Kind::closed:
      proc.machine->lost({event.plane, event.other + 1}, {Code::cancelled, "closed here"}, now_);
      break;
    default:
      break;
  }
  perform(event.process);
}

void Simulation::deliver(const Event& event) {
  Connection& connection = connections_[event.other];
  const unsigned side = event.side;
  auto& items = connection.toward[side];
  if (items.empty()) return;
  if (is_cut(connection.ends[1 - side], connection.ends[side])) {
    Event again = event;
    again.at = now_ + std::chrono::milliseconds(10);
    return push(again);
  }
  const Item item = std::move(items.front());
  items.pop_front();
  Machine& machine = *procs_[event.process].machine;
  const Link link{connection.plane, event.other + 1};
  if (const auto* established = std::get_if<Established>(&item)) {
    connection.open[side] = true;
    machine.connected(link, procs_[connection.ends[1 - side]].id, now_);
    machine.connect_done(established->connect, link, now_);
    return;
  }
  if (!connection.open[side]) return;
  if (const auto* message = std::get_if<Message>(&item)) {
    machine.received(link, *message, now_);
  } else if (const auto* reset = std::get_if<Reset>(&item)) {
    connection.open[side] = false;
    connection.closing[side] = true;
    machine.lost(link, reset->reason, now_);
  } else {
    machine.malformed(link, {Code::protocol_error, "bytes that are no membership message"}, now_);
  }
}

/// A connection attempt reaches the process that listens.
void Simulation::arrive(const Event& event) {
  const Process to = event.process;
  const Process from = event.other;
  Event answer{now_ + delay(), 0, Event::Kind::refused, 0, event.plane, from, 0, event.connect};
  if (!procs_[to].alive) return push(answer);
  if (procs_[to].paused || is_cut(from, to) || is_cut(to, from)) {
    answer.at = now_ + options_.connect_timeout;
    return push(answer);
  }
  if (!procs_[from].alive) return;
  const std::size_t c = connections_.size();
  Connection& connection = connections_.emplace_back();
  connection.plane = event.plane;
  connection.ends[0] = from;
  connection.ends[1] = to;
  connection.open[1] = true;
  enqueue(c, 0, Established{event.connect});
  procs_[to].machine->connected({event.plane, c + 1}, procs_[from].id, now_);
  perform(to);
}

void Simulation::enqueue(std::size_t c, unsigned side, Item item) {
  Connection& connection = connections_[c];
  connection.toward[side].push_back(std::move(item));
  push({now_ + delay(), 0, Event::Kind::deliver, static_cast<std::uint8_t>(side), connection.plane,
        connection.ends[side], c});
}

// What machines want.

void Simulation::perform(Process p) {
  for (auto& action : procs_[p].machine->take_actions())
    std::visit([&](auto& a) { perform(p, a); }, action);
}

void Simulation::perform(Process p, Send& send) {
  if (procs_[p].out && !procs_[p].head) return fail(p, "sends after it is out");
  const std::size_t c = send.link.number - 1;
  Connection& connection = connections_.at(c);
  const unsigned mine = side_of(connection, p);
  if (connection.closing[mine]) return;
  const bool beat = std::holds_alternative<Heartbeat>(send.message);
  if (!beat) ++procs_[p].sent.messages;
  if (options_.encode_one_in != 0 && random_() % options_.encode_one_in == 0) {
    const auto bytes = encode(send.message);
    if (!beat) procs_[p].sent.bytes += bytes.size();
    auto decoded = decode(bytes);
    if (!decoded.ok()) return fail(p, "cannot read its own bytes: " + decoded.error().message);
    send.message = std::move(*decoded);
  }
  ++messages_;
  enqueue(c, 1 - mine, std::move(send.message));
}

void Simulation::perform(Process p, const Connect& connect) {
  push({now_ + delay(), 0, Event::Kind::arrive, 0, connect.plane, process_at(connect.address), p,
        connect.id});
}

void Simulation::perform(Process p, const Close& close) {
  const std::size_t c = close.link.number - 1;
  Connection& connection = connections_.at(c);
  const unsigned mine = side_of(connection, p);
  if (connection.closing[mine]) return;
  connection.closing[mine] = true;
  connection.toward[mine].clear();
  connection.open[mine] = false;
  push({now_ + delay(), 0, Event::Kind::closed, 0, connection.plane, p, c});
  enqueue(c, 1 - mine,
          Reset{close.reason.ok() ? Error{Code::unavailable, "closed by the other side"}
                                  : close.reason.error()});
}

void Simulation::perform(Process p, const NewView& next) {
  Proc& proc = procs_[p];
  const View& view = *next.view;
  if (proc.out) return fail(p, "has a new view after it is out");
  if (proc.view && view.generation <= proc.view->generation)
    return fail(
        p, fmt::format("goes from generation {} to {}", proc.view->generation, view.generation));
  if (view.find(proc.id) == nullptr) return fail(p, "has a view without itself");
  for (const auto& departure : next.departures) proc.departed.insert(departure.node);
  for (const auto& member : view.members)
    if (proc.departed.contains(member.node)) return fail(p, "takes a departed node back");
  if (proc.head) {
    if (proc.view && view.generation != proc.view->generation + 1)
      return fail(p, "skips a generation");
    views_[{view.head, view.generation}] = next.view;
    at(Duration(1 + static_cast<Duration::rep>(
                        random_() % static_cast<std::uint64_t>(options_.store_delay.count()))),
       [this, p, written = next.view] {
         if (procs_[p].alive && heads_.back() == p) stored_ = written;
       });
  } else {
    const auto it = views_.find({view.head, view.generation});
    if (it == views_.end()) return fail(p, "has a view that its head never made");
    if (it->second != next.view && !(*it->second == view))
      return fail(p, fmt::format("has another view of generation {}", view.generation));
  }
  proc.view = next.view;
  proc.view_since = now_;
  proc.departures.insert(proc.departures.end(), next.departures.begin(), next.departures.end());
}

void Simulation::perform(Process p, const Out& out) {
  if (procs_[p].out) return fail(p, "is out twice");
  procs_[p].out = out.reason;
}

// Verdicts.

void Simulation::fail(Process p, const std::string& what) {
  if (failure_.empty())
    failure_ =
        fmt::format("at {} ms process {} {}", now_.time_since_epoch().count() / 1'000'000, p, what);
}

const Simulation::Process* Simulation::leader() const {
  for (auto at = heads_.rbegin(); at != heads_.rend(); ++at)
    if (procs_[*at].alive && !procs_[*at].out) return &*at;
  return nullptr;
}

std::string Simulation::check_settled() const {
  if (!failure_.empty()) return failure_;
  const Process* const first = leader();
  const bool led = first != nullptr;
  const Proc& head = procs_[led ? *first : 0];
  std::size_t in = 0;
  std::set<std::pair<Process, Process>> connected;
  for (const auto& c : connections_)
    if (c.plane == Plane::actors && c.open[0] && c.open[1])
      connected.insert(std::minmax(c.ends[0], c.ends[1]));
  for (Process p = 0; p < procs_.size(); ++p) {
    const Proc& proc = procs_[p];
    if (!proc.alive || proc.out) continue;
    if (proc.head && led && p != *first)
      return fmt::format("process {} still leads, and so does {}", p, *first);
    if (!led) return fmt::format("process {} does not know that its head is gone", p);
    if (!proc.view || *proc.view != *head.view)
      return fmt::format("process {} is at generation {} and not out; the head is at {}", p,
                         proc.view ? proc.view->generation : 0, head.view->generation);
    ++in;
    for (Process q = 0; q < p; ++q)
      if (procs_[q].alive && !procs_[q].out && !connected.contains({q, p}))
        return fmt::format("members {} and {} are not connected", p, q);
  }
  if (led && in != head.view->members.size())
    return fmt::format("the view has {} members, {} of them live", head.view->members.size(), in);
  return {};
}

}  // namespace troupe::membership
