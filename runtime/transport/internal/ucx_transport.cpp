#include "runtime/transport/internal/ucx_transport.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/transport/internal/host_memory.hpp"
#include "runtime/transport/internal/ucx_process.hpp"

namespace troupe::transport {
namespace {

constexpr Duration kStopTime = std::chrono::seconds(1);
/// How long a worker sleeps while it has operations open: not all of their ends raise an event
/// (room in a peer's shared-memory queue does not). Longer and longer while nothing moves.
constexpr Duration kShortestNap = std::chrono::microseconds(20);
constexpr Duration kLongestNap = std::chrono::milliseconds(5);
/// How often descriptors are looked at while there is traffic.
constexpr Duration kPollPeriod = std::chrono::microseconds(20);
constexpr std::size_t kMaxHandshakes = 256;

TimePoint time_now() {
  return std::chrono::steady_clock::now();
}

std::string build_name() {
#if defined(__clang__)
  return fmt::format("Troupe {}, clang {}.{}", TROUPE_VERSION, __clang_major__, __clang_minor__);
#else
  return fmt::format("Troupe {}, gcc {}.{}", TROUPE_VERSION, __GNUC__, __GNUC_MINOR__);
#endif
}

}  // namespace

UcxTransport::UcxTransport(Options options)
    : options_(std::move(options)), host_(host_identity()) {}

UcxTransport::~UcxTransport() {
  stop();
}

Status UcxTransport::open() {
  return poller_.open();
}

void UcxTransport::set_handler(Channel channel, Handler& handler) {
  handlers_[static_cast<std::size_t>(channel)] = &handler;
}

Status UcxTransport::start() {
  {
    MutexLock lock(state_mutex_);
    if (started_ || stopped_)
      return Error{Code::failed_precondition, "the transport was started already"};
    started_ = true;
  }
  tame_ucx();
  // Fails early if UCX's settings make no sense. Most peers want just this one.
  const auto first = context({options_.tls, options_.shared_memory, true});
  if (!first.ok()) return first.error();
  for (int i = 0; i < 2; ++i)
    threads_[static_cast<std::size_t>(i)] = std::thread([this, i] { run_thread(i); });
  return {};
}

Result<UcxContext*> UcxTransport::context(const UcxContext::Settings& settings) {
  for (const auto& made : contexts_)
    if (made->settings() == settings) return made.get();
  TROUPE_ASSIGN(auto fresh, UcxContext::make(settings));
  contexts_.push_back(std::move(fresh));
  return contexts_.back().get();
}

Result<Address> UcxTransport::listen(const Address& address) {
  TROUPE_ASSIGN(const bool loopback, is_loopback(address));
  if (!loopback && options_.token.empty())
    return Error{Code::permission_denied,
                 fmt::format("listening at {} without a cluster token would let anyone in: set a "
                             "token, or listen at 127.0.0.1",
                             to_string(address))};
  Address bound;
  TROUPE_ASSIGN(Socket socket, listen_tcp(address, bound));
  {
    MutexLock lock(state_mutex_);
    if (listens_at_.port == 0) listens_at_ = bound;
  }
  auto shared = std::make_shared<Socket>(std::move(socket));
  const bool posted = tasks_.post([this, shared] {
    if (stopping_) return;
    const std::uint64_t key = next_key_++;
    if (poller_.add(shared->fd(), key << 1).ok()) listeners_.emplace(key, std::move(*shared));
  });
  if (!posted) return Error{Code::failed_precondition, "the transport has stopped"};
  return bound;
}

void UcxTransport::connect(const Address& address, Done done) {
  auto shared = std::make_shared<Done>(std::move(done));
  if (!tasks_.post([this, address, shared] { dial(address, std::move(*shared)); }))
    (*shared)(Error{Code::cancelled, "the transport has stopped"});
}

Status UcxTransport::send(PeerId peer, Channel channel, std::span<const std::byte> head,
                          std::span<const std::byte> body, std::vector<Buffer> segments) {
  Outbox* outbox = outboxes_.find(peer);
  if (outbox == nullptr)
    return Error{Code::invalid_argument, fmt::format("there never was a peer number {}", peer)};
  TROUPE_ASSIGN(const bool first,
                outbox->append(channel, head, body, std::move(segments), !on_progress_thread()));
  if (first) tasks_.notify(peer);
  return {};
}

void UcxTransport::close(PeerId peer, Status reason) {
  auto shared = std::make_shared<Status>(std::move(reason));
  tasks_.post([this, peer, shared] {
    const auto at = keys_.find(peer);
    if (at == keys_.end()) return;
    Peer& closing = *peers_.at(at->second);
    const TimePoint now = time_now();
    closing.close(std::move(*shared), now);
    activate(closing);
    check_deadline_later(closing, now + kStopTime);
  });
}

void UcxTransport::post(std::function<void()> task) {
  tasks_.post(std::move(task));
}

void UcxTransport::post_at(TimePoint when, std::function<void()> task) {
  auto shared = std::make_shared<std::function<void()>>(std::move(task));
  tasks_.post([this, when, shared] { timers_.add(when, std::move(*shared)); });
}

bool UcxTransport::run_inline(std::function<void()> work, std::function<void()> overflow) {
  return options_.run_inline && inline_.push(std::move(work), std::move(overflow));
}

bool UcxTransport::on_progress_thread() const {
  return leadership_.is_mine();
}

Stats UcxTransport::stats() const {
  Stats stats;
  for (PeerId id = 1; id <= outboxes_.last(); ++id) {
    const Outbox* outbox = outboxes_.find(id);
    stats.messages_sent += outbox->messages();
    stats.queued_bytes += outbox->queued_bytes();
  }
  stats.messages_received = counters_.messages_received.load(std::memory_order_relaxed);
  stats.frames_sent = counters_.frames_sent.load(std::memory_order_relaxed);
  stats.frames_received = counters_.frames_received.load(std::memory_order_relaxed);
  stats.bytes_sent = counters_.bytes_sent.load(std::memory_order_relaxed);
  stats.bytes_received = counters_.bytes_received.load(std::memory_order_relaxed);
  stats.sleeps = counters_.sleeps.load(std::memory_order_relaxed);
  stats.peers = peer_count_.load(std::memory_order_relaxed);
  return stats;
}

Greeting UcxTransport::greeting() const {
  Greeting greeting;
  greeting.node = options_.node;
  greeting.name = options_.name;
  greeting.build = build_name();
  greeting.process = static_cast<std::uint32_t>(::getpid());
  greeting.host = host_;
  MutexLock lock(state_mutex_);
  greeting.listens_at = listens_at_;
  return greeting;
}

bool UcxTransport::turn(TimePoint now) {
  bool moved = run_tasks();
  moved |= work_on_peers(now);
  if (!timers_.empty()) timers_.run(now);
  if (now >= next_poll_) {
    handle_events(poller_.wait(Duration::zero()));
    next_poll_ = now + kPollPeriod;
  }
  reap();
  if (moved) nap_ = kShortestNap;
  return moved;
}

bool UcxTransport::run_tasks() {
  if (!tasks_.take(taken_tasks_, taken_peers_)) return false;
  for (const PeerId id : taken_peers_) {
    const auto at = keys_.find(id);
    if (at == keys_.end()) continue;
    Peer& peer = *peers_.at(at->second);
    peer.flush();
    activate(peer);
  }
  for (auto& task : taken_tasks_) task();
  taken_peers_.clear();
  taken_tasks_.clear();
  return true;
}

bool UcxTransport::work_on_peers(TimePoint now) {
  bool moved = false;
  // By index: a handler's call may activate another peer.
  for (std::size_t i = 0; i < active_.size();) {
    Peer& peer = *active_[i];
    moved |= peer.work(now);
    const bool rests = now - peer.last_activity() > options_.spin && peer.may_sleep();
    if (!rests) {
      ++i;
      continue;
    }
    peer.set_active(false);
    active_[i] = active_.back();
    active_.pop_back();
  }
  return moved;
}

void UcxTransport::activate(Peer& peer) {
  if (peer.active() || peer.dead()) return;
  peer.set_active(true);
  active_.push_back(&peer);
}

Duration UcxTransport::time_to_sleep(TimePoint now) const {
  Duration time = Duration(-1);
  if (!timers_.empty()) time = std::max(timers_.next() - now, Duration::zero());
  for (const auto& [key, peer] : peers_)
    if (peer->has_open_operations() && (time < Duration::zero() || time > nap_)) time = nap_;
  return time;
}

void UcxTransport::sleep() {
  if (!tasks_.begin_sleep()) return;
  counters_.sleeps.fetch_add(1, std::memory_order_relaxed);
  const auto events = poller_.wait(time_to_sleep(time_now()));
  tasks_.end_sleep();
  nap_ = std::min(nap_ * 2, kLongestNap);
  if (events.empty())
    for (const auto& [key, peer] : peers_)
      if (peer->has_open_operations()) activate(*peer);
  handle_events(events);
}

void UcxTransport::handle_events(std::span<const epoll_event> events) {
  for (const epoll_event& event : events) {
    const std::uint64_t key = event.data.u64 >> 1;
    if (listeners_.contains(key)) {
      accept_peers(key);
      continue;
    }
    const auto at = peers_.find(key);
    if (at == peers_.end()) continue;
    if ((event.data.u64 & 1) == 0) at->second->on_control_event(time_now());
    at->second->wake(time_now());
    activate(*at->second);
  }
}

void UcxTransport::reap() {
  bool any = false;
  for (const auto& [key, peer] : peers_) any |= peer->dead();
  if (!any) return;
  std::erase_if(active_, [](const Peer* peer) { return peer->dead(); });
  std::erase_if(keys_, [this](const auto& entry) { return peers_.at(entry.second)->dead(); });
  std::erase_if(peers_, [](const auto& entry) { return entry.second->dead(); });
}

void UcxTransport::accept_peers(std::uint64_t key) {
  for (;;) {
    auto dialed = accept_tcp(listeners_.at(key));
    // Out of descriptors: wait for some to be closed, with the caller left in the queue.
    if (!dialed.ok() || !dialed->socket.valid()) return;
    const auto shaking = std::count_if(peers_.begin(), peers_.end(),
                                       [](const auto& entry) { return entry.second->shaking(); });
    if (static_cast<std::size_t>(shaking) >= kMaxHandshakes || stopping_) continue;
    const std::uint64_t peer = next_key_++;
    adopt(std::make_unique<Peer>(static_cast<PeerHost&>(*this), std::move(*dialed), peer << 1),
          peer, time_now());
  }
}

void UcxTransport::dial(const Address& address, Done done) {
  if (stopping_) return done(Error{Code::cancelled, "the transport has stopped"});
  auto dialed = dial_tcp(address);
  if (!dialed.ok()) return done(dialed.error());
  const std::uint64_t key = next_key_++;
  adopt(std::make_unique<Peer>(static_cast<PeerHost&>(*this), std::move(*dialed), key << 1, address,
                               std::move(done)),
        key, time_now());
}

void UcxTransport::adopt(std::unique_ptr<Peer> peer, std::uint64_t key, TimePoint now) {
  Peer& adopted = *peer;
  peers_.emplace(key, std::move(peer));
  adopted.start(now);
  check_deadline_later(adopted, now + options_.connect_timeout);
}

void UcxTransport::check_deadline_later(const Peer& peer, TimePoint when) {
  timers_.add(when, [this, key = peer.key()] {
    const auto at = peers_.find(key);
    if (at != peers_.end()) at->second->check_deadline(time_now());
  });
}

PeerId UcxTransport::on_peer_connected(Peer& peer, const PeerInfo& info) {
  const PeerId id = outboxes_.add(peer.outbox());
  TROUPE_CHECK(id != 0, "a transport can have a million peers in its life");
  keys_.emplace(id, peer.key());
  peer_count_.fetch_add(1, std::memory_order_relaxed);
  for (Handler* handler : handlers_)
    if (handler != nullptr) handler->on_connected(id, info);
  return id;
}

void UcxTransport::on_peer_message(PeerId peer, Channel channel, std::span<const std::byte> bytes,
                                   std::span<Buffer> segments) {
  Handler* handler = handlers_[static_cast<std::size_t>(channel)];
  if (handler != nullptr) handler->on_message(peer, bytes, segments);
}

void UcxTransport::on_peer_lost(PeerId peer, const Error& reason) {
  peer_count_.fetch_sub(1, std::memory_order_relaxed);
  for (Handler* handler : handlers_)
    if (handler != nullptr) handler->on_lost(peer, reason);
}

Result<std::unique_ptr<Transport>> make_ucx_transport(Options options) {
  if (!options.node.valid())
    return Error{Code::invalid_argument,
                 "the transport needs a node id: NodeId::random() makes one"};
  if (options.connect_timeout <= Duration::zero() || options.send_timeout < Duration::zero() ||
      options.spin < Duration::zero())
    return Error{Code::invalid_argument, "the transport's timeouts must not be negative"};
  if (options.max_message_bytes > UINT32_MAX)
    return Error{Code::invalid_argument,
                 fmt::format("max_message_bytes is {}: at most 4 GiB", options.max_message_bytes)};
  auto transport = std::make_unique<UcxTransport>(std::move(options));
  TROUPE_TRY(transport->open());
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace troupe::transport
