#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/mutex.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::remoting {

class FakeTransport;

/// A network inside this process, whose every fault is at the test's hand.
/// Threads: any. Outlives its transports' stop().
class FakeNetwork {
public:
  /// Frames to `node` wait until release().
  void hold(NodeId node);
  void release(NodeId node);
  /// Connections to `address` are refused with `unavailable`.
  void refuse(const transport::Address& address);
  /// Cuts every connection of `node`, as if it were killed: what is under way is gone.
  void kill(NodeId node);

private:
  friend class FakeTransport;
  Mutex mutex_;
  std::map<std::string, FakeTransport*> listeners_ TROUPE_GUARDED_BY(mutex_);
  std::map<NodeId, FakeTransport*> nodes_ TROUPE_GUARDED_BY(mutex_);
  std::set<NodeId> held_ TROUPE_GUARDED_BY(mutex_);
  std::set<std::string> refused_ TROUPE_GUARDED_BY(mutex_);
  std::uint16_t next_port_ TROUPE_GUARDED_BY(mutex_) = 1000;
};

/// One node's transport on a FakeNetwork, with a progress thread of its own. Keeps the contract of
/// Transport; inline work runs after each arrival and is never overtaken.
class FakeTransport final : public transport::Transport {
public:
  FakeTransport(FakeNetwork& network, transport::Options options);
  ~FakeTransport() override;

  /// send() fails with this from now on, for any thread.
  void fail_sends(Error error);
  /// The peer's connection ends without a close on this side's part.
  void lose(transport::PeerId peer, const Error& reason);
  /// A message from `peer`, made up by the test.
  void arrive(transport::PeerId peer, std::vector<std::byte> bytes, std::vector<Buffer> segments);
  /// Returns when what had arrived was handled, and what that posted.
  void settle();
  std::vector<transport::PeerId> peers() const;
  std::vector<Error> losses() const;
  std::uint64_t inline_runs() const { return inline_runs_.load(); }

  void set_handler(transport::Channel channel, transport::Handler& handler) override;
  Status start() override;
  Result<transport::Address> listen(const transport::Address& address) override;
  void connect(const transport::Address& address,
               std::function<void(Result<transport::PeerId>)> done) override;
  Status send(transport::PeerId peer, transport::Channel channel, std::span<const std::byte> head,
              std::span<const std::byte> body, std::vector<Buffer> segments) override;
  void close(transport::PeerId peer, Status reason) override;
  void post(std::function<void()> task) override;
  void post_at(TimePoint when, std::function<void()> task) override;
  bool run_inline(std::function<void()> work, std::function<void()> overflow) override;
  bool on_progress_thread() const override;
  transport::Stats stats() const override;
  void stop() override;

private:
  friend class FakeNetwork;
  struct Link {
    FakeTransport* other;
    transport::PeerId number_there;
  };
  struct Inline {
    std::function<void()> work, overflow;
  };

  void run();
  bool held() const;
  bool is_open(transport::PeerId peer) const;
  void arrival(std::function<void()> task);
  transport::PeerId add_link(FakeTransport& other);  // with the network's lock held
  void meet(transport::PeerId peer, FakeTransport& other, bool outgoing);
  void drop(transport::PeerId peer, const Error& reason);

  FakeNetwork& network_;
  const transport::Options options_;
  transport::Handler* handler_ = nullptr;
  transport::Address listens_at_;
  std::thread thread_;
  std::atomic<std::thread::id> thread_id_{};
  std::atomic<std::uint64_t> inline_runs_{0};
  std::deque<Inline> inline_;  ///< the progress thread's
  bool inline_open_ = true;

  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ TROUPE_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> arrivals_ TROUPE_GUARDED_BY(mutex_);
  std::multimap<TimePoint, std::function<void()>> timers_ TROUPE_GUARDED_BY(mutex_);
  std::map<transport::PeerId, Link> links_ TROUPE_GUARDED_BY(mutex_);
  std::map<transport::PeerId, Error> losses_ TROUPE_GUARDED_BY(mutex_);
  std::optional<Error> fail_sends_ TROUPE_GUARDED_BY(mutex_);
  transport::PeerId next_peer_ TROUPE_GUARDED_BY(mutex_) = 1;
  bool stopping_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::remoting
