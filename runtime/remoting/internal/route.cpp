#include "runtime/remoting/internal/route.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace troupe::remoting {
namespace {

/// What may wait for a connection before a sender waits with it, and for how long.
constexpr std::size_t kMaxQueuedBytes = std::size_t{256} << 20;
constexpr auto kMaxWait = std::chrono::seconds(10);

Error gone(NodeId node) {
  return {Code::unavailable, fmt::format("node {} is gone", short_name(node))};
}

}  // namespace

Route::Route(NodeId node, caf::node_id caf_node, transport::Transport& transport, RouteOwner& owner)
    : node_(node), caf_node_(std::move(caf_node)), transport_(transport), owner_(owner) {}

Status Route::send(const Head& head, std::span<const std::byte> body,
                   std::vector<Buffer> segments) {
  if (const auto peer = direct_.load(std::memory_order_acquire); peer != 0)
    return transport_.send(peer, transport::Channel::actors, head, body, std::move(segments));
  Frame frame;
  frame.bytes.reserve(head.size() + body.size());
  frame.bytes.insert(frame.bytes.end(), head.begin(), head.end());
  frame.bytes.insert(frame.bytes.end(), body.begin(), body.end());
  frame.size = frame.bytes.size();
  for (const auto& segment : segments) frame.size += segment.size();
  frame.segments = std::move(segments);
  return wait_in_line(std::move(frame));
}

Status Route::wait_in_line(Frame frame) {
  auto next = Next::nothing;
  {
    MutexLock lock(mutex_);
    if (!transport_.on_progress_thread() && !wait_for_room())
      return Error{Code::resource_exhausted,
                   fmt::format("{} bytes wait for a connection to node {}", queued_bytes_,
                               short_name(node_))};
    if (lost()) return gone(node_);
    // If the way became free meanwhile, the flush that this asks for ends at once.
    next = push(std::move(frame));
  }
  act(next);
  return {};
}

bool Route::wait_for_room() {
  const auto until = std::chrono::steady_clock::now() + kMaxWait;
  while (queued_bytes_ > kMaxQueuedBytes && !lost())
    if (room_.wait_until(mutex_, until) == std::cv_status::timeout) return false;
  return true;
}

void Route::queue(const Envelope& envelope) {
  Head head;
  encode(envelope, 0, head);
  auto next = Next::nothing;
  {
    MutexLock lock(mutex_);
    if (lost()) return;
    next = push(Frame{{head.begin(), head.end()}, {}, head.size()});
  }
  act(next);
}

Route::Next Route::push(Frame frame) {
  direct_.store(0, std::memory_order_release);
  queued_bytes_ += frame.size;
  queue_.push_back(std::move(frame));
  if (state_ == State::idle) {
    state_ = State::connecting;
    return Next::connect;
  }
  if (state_ == State::connecting || std::exchange(flush_posted_, true)) return Next::nothing;
  return Next::flush;
}

void Route::act(Next next) {
  if (next == Next::connect) owner_.connect_later(shared_from_this());
  if (next == Next::flush) owner_.flush_later(shared_from_this());
}

void Route::flush() {
  while (true) {
    std::deque<Frame> frames;
    transport::PeerId peer = 0;
    {
      MutexLock lock(mutex_);
      flush_posted_ = false;
      if (lost() || state_ != State::open) return;
      peer = peers_.front();
      if (queue_.empty()) {
        direct_.store(peer, std::memory_order_release);
        return;
      }
      frames.swap(queue_);
      queued_bytes_ = 0;
      room_.notify_all();
    }
    for (auto& frame : frames) {
      const auto sent = transport_.send(peer, transport::Channel::actors, frame.bytes, {},
                                        std::move(frame.segments));
      if (!sent.ok()) owner_.not_sent(shared_from_this(), frame.bytes, sent.error());
    }
  }
}

void Route::connected(transport::PeerId peer) {
  {
    MutexLock lock(mutex_);
    peers_.push_back(peer);
    if (peers_.size() > 1) return;
    state_ = State::open;
  }
  flush();
}

bool Route::disconnected(transport::PeerId peer) {
  MutexLock lock(mutex_);
  const bool sent_on = !peers_.empty() && peers_.front() == peer;
  std::erase(peers_, peer);
  if (sent_on) direct_.store(0, std::memory_order_release);
  if (peers_.empty()) state_ = State::idle;
  return sent_on;
}

void Route::reset() {
  {
    MutexLock lock(mutex_);
    drop_queue();
    state_ = peers_.empty() ? State::idle : State::open;
  }
  flush();
}

bool Route::lose() {
  MutexLock lock(mutex_);
  if (lost_.exchange(true, std::memory_order_acq_rel)) return false;
  drop_queue();
  return true;
}

void Route::drop_queue() {
  direct_.store(0, std::memory_order_release);
  queue_.clear();
  queued_bytes_ = 0;
  room_.notify_all();
}

std::vector<transport::PeerId> Route::peers() const {
  MutexLock lock(mutex_);
  return peers_;
}

bool Route::watch(std::uint64_t actor) {
  MutexLock lock(mutex_);
  return watched_.insert(actor).second;
}

bool Route::unwatch(std::uint64_t actor) {
  MutexLock lock(mutex_);
  return watched_.erase(actor) != 0;
}

std::unordered_set<std::uint64_t> Route::unwatch_all() {
  MutexLock lock(mutex_);
  return std::exchange(watched_, {});
}

}  // namespace troupe::remoting
