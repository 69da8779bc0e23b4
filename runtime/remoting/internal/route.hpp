#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include <caf/node_id.hpp>

#include "runtime/base/mutex.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/remoting/internal/envelope.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::remoting {

class Route;

/// What a Route asks of its owner. Both may be called with CAF's locks held, so they only post.
class RouteOwner {
public:
  virtual ~RouteOwner() = default;
  /// Connects; ends in Route::connected() or Route::reset().
  virtual void connect_later(std::shared_ptr<Route> route) = 0;
  /// Calls Route::flush() on the progress thread.
  virtual void flush_later(std::shared_ptr<Route> route) = 0;
  /// Progress. A message that waited, and of which send() said that it was so, could not be sent.
  virtual void not_sent(const std::shared_ptr<Route>& route, std::span<const std::byte> message,
                        const Error& reason) = 0;
};

/// The way to one node: its connection, and what waits until there is one.
///
/// Everything for a node leaves in the order in which each thread sent it. Mostly a message goes
/// straight to the transport. While something waits here (no connection yet, or a frame from a
/// place that must not block), everything waits behind it.
///
/// Two nodes that connect to each other at the same moment have two connections. Each side sends on
/// the first it saw and reads from both.
///
/// Ownership: shared by the endpoint and its proxies; borrows transport and owner.
/// Threads:   any, but what is marked "progress" comes from the progress thread only.
class Route : public std::enable_shared_from_this<Route> {
public:
  Route(NodeId node, caf::node_id caf_node, transport::Transport& transport, RouteOwner& owner);

  NodeId node() const noexcept { return node_; }
  const caf::node_id& caf_node() const noexcept { return caf_node_; }

  /// Sends, or queues and connects. May block as Transport::send does, except on the progress
  /// thread. Errors: those of Transport::send.
  Status send(const Head& head, std::span<const std::byte> body, std::vector<Buffer> segments);

  /// Queues a message without a body. Never blocks.
  void queue(const Envelope& envelope);

  /// Nothing is sent any more; what waits is dropped. False if it was so already.
  bool lose();
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

  /// Progress.
  void connected(transport::PeerId peer);
  /// Progress. True if `peer` was the connection that is sent on: what was under way is gone.
  bool disconnected(transport::PeerId peer);
  /// Progress. Drops what waits. With another connection it goes on on that one.
  void reset();
  /// Progress. Sends what waits.
  void flush();
  std::vector<transport::PeerId> peers() const;

  // Actors of this node that the other one monitors.
  bool watch(std::uint64_t actor);
  /// False if it was not watched.
  bool unwatch(std::uint64_t actor);
  std::unordered_set<std::uint64_t> unwatch_all();

private:
  struct Frame {
    std::vector<std::byte> bytes;
    std::vector<Buffer> segments;
    std::size_t size = 0;
  };
  enum class State { idle, connecting, open };
  enum class Next { nothing, connect, flush };

  Status wait_in_line(Frame frame);
  Next push(Frame frame) TROUPE_REQUIRES(mutex_);
  bool wait_for_room() TROUPE_REQUIRES(mutex_);
  void drop_queue() TROUPE_REQUIRES(mutex_);
  void act(Next next);

  const NodeId node_;
  const caf::node_id caf_node_;
  transport::Transport& transport_;
  RouteOwner& owner_;

  /// The connection, if nothing waits and messages may go straight to it.
  std::atomic<transport::PeerId> direct_{0};
  std::atomic<bool> lost_{false};

  mutable Mutex mutex_;
  CondVar room_;
  State state_ TROUPE_GUARDED_BY(mutex_) = State::idle;
  std::vector<transport::PeerId> peers_ TROUPE_GUARDED_BY(mutex_);  ///< sent on: the first
  std::deque<Frame> queue_ TROUPE_GUARDED_BY(mutex_);
  std::size_t queued_bytes_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool flush_posted_ TROUPE_GUARDED_BY(mutex_) = false;
  std::unordered_set<std::uint64_t> watched_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::remoting
