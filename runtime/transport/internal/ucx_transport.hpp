#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/base/mutex.hpp"
#include "runtime/memory/buffer_pool.hpp"
#include "runtime/transport/internal/inline_queue.hpp"
#include "runtime/transport/internal/leadership.hpp"
#include "runtime/transport/internal/outbox_directory.hpp"
#include "runtime/transport/internal/peer.hpp"
#include "runtime/transport/internal/poller.hpp"
#include "runtime/transport/internal/task_queue.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::transport {

/// Transport over UCX: see Transport. Two threads, of which one (the leader) makes progress; the
/// other stands by in case work that the leader runs inline takes long. Everything below the line
/// "leader's" is touched by the leader only, and goes to the next leader with the lead.
class UcxTransport final : public Transport, PeerHost {
public:
  explicit UcxTransport(Options options);
  ~UcxTransport() override;
  Status open();

  void set_handler(Channel channel, Handler& handler) override;
  Status start() override;
  Result<Address> listen(const Address& address) override;
  void connect(const Address& address, std::function<void(Result<PeerId>)> done) override;
  Status send(PeerId peer, Channel channel, std::span<const std::byte> head,
              std::span<const std::byte> body, std::vector<Buffer> segments) override;
  void close(PeerId peer, Status reason) override;
  void post(std::function<void()> task) override;
  void post_at(TimePoint when, std::function<void()> task) override;
  bool run_inline(std::function<void()> work, std::function<void()> overflow) override;
  bool on_progress_thread() const override;
  Stats stats() const override;
  void stop() override;

private:
  using Done = std::function<void(Result<PeerId>)>;

  // Threads and the lead.
  void run_thread(int index);
  void lead();
  void stand_by(int index);
  bool run_inline_work();
  void wake_stand_in();

  // The loop; leader only.
  bool turn(TimePoint now);
  bool run_tasks();
  bool work_on_peers(TimePoint now);
  void sleep();
  Duration time_to_sleep(TimePoint now) const;
  void handle_events(std::span<const epoll_event> events);
  void activate(Peer& peer);
  void reap();
  void accept_peers(std::uint64_t key);
  void dial(const Address& address, Done done);
  void adopt(std::unique_ptr<Peer> peer, std::uint64_t key, TimePoint now);
  void begin_stop();
  void finish_stop();

  // PeerHost
  const Options& options() const override { return options_; }
  Greeting greeting() const override;
  BufferPool& pool() override { return pool_; }
  Poller& poller() override { return poller_; }
  Counters& counters() override { return counters_; }
  Result<UcxContext*> context(const UcxContext::Settings& settings) override;
  void check_deadline_later(const Peer& peer, TimePoint when) override;
  PeerId on_peer_connected(Peer& peer, const PeerInfo& info) override;
  void on_peer_message(PeerId peer, Channel channel, std::span<const std::byte> bytes,
                       std::span<Buffer> segments) override;
  void on_peer_lost(PeerId peer, const Error& reason) override;

  const Options options_;
  const std::string host_;
  BufferPool pool_;
  Poller poller_;
  TaskQueue tasks_{poller_};
  InlineQueue inline_;
  Leadership leadership_;
  Counters counters_;
  OutboxDirectory outboxes_;
  std::array<Handler*, static_cast<std::size_t>(Channel::count)> handlers_{};
  std::atomic<std::size_t> peer_count_{0};

  mutable Mutex state_mutex_;
  CondVar stand_in_wakes_;
  bool started_ TROUPE_GUARDED_BY(state_mutex_) = false;
  bool stopped_ TROUPE_GUARDED_BY(state_mutex_) = false;
  Address listens_at_ TROUPE_GUARDED_BY(state_mutex_);
  std::atomic<bool> stand_in_asleep_{false};
  std::atomic<bool> finished_{false};
  std::array<std::thread, 2> threads_;

  // ---- leader's ----
  std::vector<std::unique_ptr<UcxContext>> contexts_;
  std::unordered_map<std::uint64_t, Socket> listeners_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  std::unordered_map<PeerId, std::uint64_t> keys_;
  std::vector<Peer*> active_;
  Timers timers_;
  std::uint64_t next_key_ = 1;
  TimePoint next_poll_{};
  Duration nap_{1};
  bool stopping_ = false;
  TimePoint stop_deadline_{};
  std::vector<std::function<void()>> taken_tasks_;
  std::vector<PeerId> taken_peers_;
};

}  // namespace troupe::transport
