#include "tests/runtime/remoting/fake_transport.hpp"

#include <future>
#include <utility>

namespace troupe::remoting {

using transport::PeerId;

void FakeNetwork::hold(NodeId node) {
  MutexLock lock(mutex_);
  held_.insert(node);
}

void FakeNetwork::release(NodeId node) {
  MutexLock lock(mutex_);
  held_.erase(node);
  if (const auto at = nodes_.find(node); at != nodes_.end()) at->second->post([] {});
}

void FakeNetwork::refuse(const transport::Address& address) {
  MutexLock lock(mutex_);
  refused_.insert(to_string(address));
}

void FakeNetwork::kill(NodeId node) {
  FakeTransport* victim = nullptr;
  {
    MutexLock lock(mutex_);
    victim = nodes_.at(node);
    listeners_.erase(to_string(victim->listens_at_));
  }
  for (const auto peer : victim->peers())
    victim->lose(peer, {Code::unavailable, "the connection was cut"});
}

FakeTransport::FakeTransport(FakeNetwork& network, transport::Options options)
    : network_(network), options_(std::move(options)) {}

FakeTransport::~FakeTransport() {
  stop();
}

void FakeTransport::fail_sends(Error error) {
  MutexLock lock(mutex_);
  fail_sends_ = std::move(error);
}

void FakeTransport::arrive(PeerId peer, std::vector<std::byte> bytes,
                           std::vector<Buffer> segments) {
  arrival([this, peer, bytes = std::move(bytes), segments = std::move(segments)]() mutable {
    if (is_open(peer)) handler_->on_message(peer, bytes, segments);
  });
}

bool FakeTransport::is_open(PeerId peer) const {
  MutexLock lock(mutex_);
  return links_.contains(peer);
}

void FakeTransport::arrival(std::function<void()> task) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  arrivals_.push_back(std::move(task));
  wake_.notify_all();
}

void FakeTransport::settle() {
  std::promise<void> handled;
  arrival([this, &handled] { post([&handled] { handled.set_value(); }); });
  handled.get_future().wait();
}

std::vector<PeerId> FakeTransport::peers() const {
  MutexLock lock(mutex_);
  std::vector<PeerId> peers;
  for (const auto& [peer, link] : links_) peers.push_back(peer);
  return peers;
}

std::vector<Error> FakeTransport::losses() const {
  MutexLock lock(mutex_);
  std::vector<Error> errors;
  for (const auto& [peer, error] : losses_) errors.push_back(error);
  return errors;
}

void FakeTransport::set_handler(transport::Channel, transport::Handler& handler) {
  handler_ = &handler;
}

Status FakeTransport::start() {
  {
    MutexLock lock(network_.mutex_);
    network_.nodes_[options_.node] = this;
  }
  thread_ = std::thread([this] { run(); });
  return {};
}

bool FakeTransport::held() const {
  MutexLock lock(network_.mutex_);
  return network_.held_.contains(options_.node);
}

void FakeTransport::run() {
  thread_id_ = std::this_thread::get_id();
  while (true) {
    while (!inline_.empty()) {
      auto item = std::move(inline_.front());
      inline_.pop_front();
      ++inline_runs_;
      item.work();
    }
    const bool hold = held();
    std::function<void()> task;
    {
      MutexLock lock(mutex_);
      const auto now = std::chrono::steady_clock::now();
      if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      } else if (!timers_.empty() && timers_.begin()->first <= now) {
        task = std::move(timers_.begin()->second);
        timers_.erase(timers_.begin());
      } else if (stopping_) {
        break;
      } else if (!hold && !arrivals_.empty()) {
        task = std::move(arrivals_.front());
        arrivals_.pop_front();
      } else if (timers_.empty()) {
        wake_.wait(mutex_);
      } else {
        wake_.wait_until(mutex_, timers_.begin()->first);
      }
    }
    if (task) task();
  }
  inline_open_ = false;
  for (auto& item : std::exchange(inline_, {})) item.overflow();
}

Result<transport::Address> FakeTransport::listen(const transport::Address& address) {
  MutexLock lock(network_.mutex_);
  listens_at_ = {address.host, address.port != 0 ? address.port : network_.next_port_++};
  network_.listeners_[to_string(listens_at_)] = this;
  return listens_at_;
}

PeerId FakeTransport::add_link(FakeTransport& other) {
  MutexLock lock(mutex_);
  links_[next_peer_] = {&other, 0};
  return next_peer_++;
}

void FakeTransport::connect(const transport::Address& address,
                            std::function<void(Result<PeerId>)> done) {
  FakeTransport* other = nullptr;
  PeerId here = 0, there = 0;
  {
    MutexLock lock(network_.mutex_);
    const auto at = network_.listeners_.find(to_string(address));
    if (at != network_.listeners_.end() && !network_.refused_.contains(to_string(address))) {
      other = at->second;
      here = add_link(*other);
      there = other->add_link(*this);
    }
  }
  if (other == nullptr) {
    post([done = std::move(done), address] {
      done(Error{Code::unavailable, "nobody answers at " + to_string(address)});
    });
    return;
  }
  {
    MutexLock lock(mutex_);
    links_[here].number_there = there;
  }
  {
    MutexLock lock(other->mutex_);
    other->links_[there].number_there = here;
  }
  other->meet(there, *this, false);
  meet(here, *other, true);
  arrival([this, here, done = std::move(done)] {
    if (is_open(here)) return done(here);
    Error why{Code::cancelled, "this transport has stopped"};
    {
      MutexLock lock(mutex_);
      if (const auto lost = losses_.find(here); lost != losses_.end()) why = lost->second;
    }
    done(why);
  });
}

void FakeTransport::meet(PeerId peer, FakeTransport& other, bool outgoing) {
  transport::PeerInfo info;
  info.node = other.options_.node;
  info.name = other.options_.name;
  info.outgoing = outgoing;
  info.same_host = true;
  arrival([this, peer, info] {
    if (is_open(peer)) handler_->on_connected(peer, info);
  });
}

Status FakeTransport::send(PeerId peer, transport::Channel, std::span<const std::byte> head,
                           std::span<const std::byte> body, std::vector<Buffer> segments) {
  Link link{};
  {
    MutexLock lock(mutex_);
    if (fail_sends_) return *fail_sends_;
    const auto at = links_.find(peer);
    if (at == links_.end()) return Error{Code::unavailable, "the peer is gone"};
    link = at->second;
    if (head.size() + body.size() > options_.max_message_bytes)
      return Error{Code::invalid_argument, "the message is too large"};
  }
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), body.begin(), body.end());
  for (auto& segment : segments) segment = Buffer::copy_of(segment.bytes()).value();
  link.other->arrive(link.number_there, std::move(bytes), std::move(segments));
  return {};
}

void FakeTransport::lose(PeerId peer, const Error& reason) {
  Link link{};
  {
    MutexLock lock(mutex_);
    const auto at = links_.find(peer);
    if (at == links_.end()) return;
    link = at->second;
  }
  drop(peer, reason);
  link.other->drop(link.number_there, reason);
}

void FakeTransport::drop(PeerId peer, const Error& reason) {
  {
    MutexLock lock(mutex_);
    if (links_.erase(peer) == 0) return;
    losses_.emplace(peer, reason);
  }
  // After what is being handled, before what waits: as if that had not arrived.
  post([this, peer, reason] { handler_->on_lost(peer, reason); });
}

void FakeTransport::close(PeerId peer, Status reason) {
  post([this, peer, reason] {
    lose(peer, reason.ok() ? Error{Code::cancelled, "closed"} : reason.error());
  });
}

void FakeTransport::post(std::function<void()> task) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  tasks_.push_back(std::move(task));
  wake_.notify_all();
}

void FakeTransport::post_at(TimePoint when, std::function<void()> task) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  timers_.emplace(when, std::move(task));
  wake_.notify_all();
}

bool FakeTransport::run_inline(std::function<void()> work, std::function<void()> overflow) {
  if (!options_.run_inline || !inline_open_) return false;
  inline_.push_back({std::move(work), std::move(overflow)});
  return true;
}

bool FakeTransport::on_progress_thread() const {
  return thread_id_.load() == std::this_thread::get_id();
}

transport::Stats FakeTransport::stats() const {
  return {};
}

void FakeTransport::stop() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(stopping_, true)) return;
    timers_.clear();
    wake_.notify_all();
  }
  std::map<PeerId, Link> links;
  {
    MutexLock lock(mutex_);
    links.swap(links_);
  }
  for (const auto& [peer, link] : links)
    link.other->drop(link.number_there, {Code::unavailable, "the other side has stopped"});
  if (thread_.joinable()) thread_.join();
  MutexLock lock(network_.mutex_);
  network_.nodes_.erase(options_.node);
  network_.listeners_.erase(to_string(listens_at_));
}

}  // namespace troupe::remoting
