#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/base/mutex.hpp"
#include "runtime/cluster/runtime.hpp"
#include "runtime/membership/message.hpp"

namespace troupe::cluster {

/// What this process knows of its cluster, for all who ask, wait or subscribe. Subscribers run on a
/// thread of their own: a slow one delays other subscribers, never the membership.
///
/// Threads: any for all; stop() from any but a subscriber's.
class ViewBoard {
public:
  /// Called on the subscribers' thread before them, with each departure.
  using OnDeparture = std::function<void(const Departure&)>;

  ViewBoard() = default;
  ~ViewBoard();
  ViewBoard(const ViewBoard&) = delete;
  ViewBoard& operator=(const ViewBoard&) = delete;

  void start(NodeId self, OnDeparture on_departure);
  /// Calls what is waiting to be called, then ends the thread. Idempotent.
  void stop();

  void publish(membership::SharedView view, std::vector<Departure> departures);
  /// This process is out. All other members count as departed for it.
  void set_out(const Error& reason);

  membership::SharedView view() const;
  std::optional<Error> out() const;

  /// Error: `deadline_exceeded`.
  Status wait_until_in_or_out(TimePoint until) const;
  Status wait_until_out(TimePoint until) const;
  /// As Runtime::wait_for_nodes.
  Status wait_for_nodes(std::size_t count, TimePoint until, Duration timeout) const;

  std::uint64_t subscribe(Runtime::ViewCallback on_change);
  void unsubscribe(std::uint64_t subscription);

private:
  struct Change {
    membership::SharedView view;  ///< null: only departures
    std::vector<Departure> departures;
  };

  void run();
  void deliver(const Change& change);
  void call(std::uint64_t subscription, const Change& change);
  std::size_t nodes_with_slots() const TROUPE_REQUIRES(mutex_);

  NodeId self_;
  OnDeparture on_departure_;
  std::thread thread_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  membership::SharedView view_ TROUPE_GUARDED_BY(mutex_);
  std::optional<Error> out_ TROUPE_GUARDED_BY(mutex_);
  std::deque<Change> queue_ TROUPE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::shared_ptr<Runtime::ViewCallback>> subscribers_
      TROUPE_GUARDED_BY(mutex_);
  std::uint64_t last_subscription_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t running_ TROUPE_GUARDED_BY(mutex_) = 0;  ///< the subscriber that is being called
  bool stopping_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::cluster
