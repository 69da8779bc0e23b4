#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/mutex.hpp"
#include "runtime/cluster/internal/call_gate.hpp"
#include "runtime/cluster/internal/head.hpp"
#include "runtime/cluster/internal/view_board.hpp"
#include "runtime/cluster/runtime.hpp"
#include "runtime/remoting/remoting.hpp"

namespace troupe::cluster {

/// Tells a head that the store has another leader, as long as there is that head. Threads: any.
class Deposer {
public:
  void set(Head* head) {
    MutexLock lock(mutex_);
    head_ = head;
    if (head_ != nullptr && reason_) head_->depose(*reason_);
  }
  void depose(const Error& reason) {
    MutexLock lock(mutex_);
    reason_ = reason;
    if (head_ != nullptr) head_->depose(reason);
  }

private:
  Mutex mutex_;
  Head* head_ TROUPE_GUARDED_BY(mutex_) = nullptr;
  std::optional<Error> reason_ TROUPE_GUARDED_BY(mutex_);
};

/// A Runtime: two transports, the remoting over the first, and a Head or a Node over both.
class RuntimeImpl final : public Runtime, private Participant::Events {
public:
  explicit RuntimeImpl(RuntimeOptions options);
  ~RuntimeImpl() override;

  /// Everything but the membership. Once, first; then lead() or join().
  Status open();
  Status lead();
  Status join(const transport::Address& head);

  NodeId id() const override { return id_; }
  transport::Address address() const override { return self_.address; }
  bool is_head() const override { return is_head_; }
  control::Store* store() const override { return options_.store.get(); }
  std::uint64_t term() const override { return term_; }
  caf::actor_system& system() override;
  View view() const override;
  Status wait_for_nodes(std::size_t count, Duration timeout) override;
  std::uint64_t subscribe(ViewCallback on_change) override;
  void unsubscribe(std::uint64_t subscription) override;
  Status drain(NodeId node) override;
  Status membership_status() const override;
  Status wait_until_out(Duration timeout) override;
  Status register_name(const std::string& name, const caf::actor& actor) override;
  Result<caf::actor> lookup(NodeId node, const std::string& name, Duration timeout) override;
  Result<caf::actor> spawn_on(NodeId node, const std::string& type, caf::message arguments,
                              Duration timeout) override;
  void spawn_on_async(NodeId node, const std::string& type, caf::message arguments,
                      Duration timeout, std::function<void(Result<caf::actor>)> done) override;
  transport::Stats transport_stats() const override;
  void stop() override;

private:
  // On the liveness thread.
  void on_view(membership::SharedView view, std::vector<Departure> departures) override;
  void on_out(const Error& reason) override;

  Participant::Events& events() { return *this; }
  Status make_transports();
  Status listen();
  Result<membership::HeadMachine::Options> take_lead();
  void keep(const membership::SharedView& view);
  void leave();
  TimePoint after(Duration timeout) const;
  membership::Timing timing() const;

  const RuntimeOptions options_;
  const NodeId id_ = NodeId::random();
  const SteadyClock clock_;
  bool is_head_ = false;
  std::uint64_t term_ = 1;
  std::shared_ptr<Deposer> deposer_ = std::make_shared<Deposer>();
  Member self_;
  ViewBoard board_;

  // From what others stand on to what stands on them.
  std::unique_ptr<transport::Transport> actors_;
  std::unique_ptr<transport::Transport> liveness_;
  std::unique_ptr<remoting::Remoting> remoting_;
  std::unique_ptr<Participant> participant_;
  CallGate calls_;  ///< into the remoting
  bool began_ = false;

  Mutex stop_mutex_;
  bool stopped_ TROUPE_GUARDED_BY(stop_mutex_) = false;
};

}  // namespace troupe::cluster
