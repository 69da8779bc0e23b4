#include "runtime/cluster/internal/view_board.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

namespace troupe::cluster {

ViewBoard::~ViewBoard() {
  stop();
}

void ViewBoard::start(NodeId self, OnDeparture on_departure) {
  self_ = self;
  on_departure_ = std::move(on_departure);
  thread_ = std::thread([this] { run(); });
}

void ViewBoard::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void ViewBoard::publish(membership::SharedView view, std::vector<Departure> departures) {
  MutexLock lock(mutex_);
  view_ = view;
  queue_.push_back({std::move(view), std::move(departures)});
  changed_.notify_all();
}

void ViewBoard::set_out(const Error& reason) {
  MutexLock lock(mutex_);
  if (out_) return;
  out_ = reason;
  Change change;
  if (view_)
    for (const auto& member : view_->members)
      if (member.node != self_) change.departures.push_back({member.node, member.name, reason});
  queue_.push_back(std::move(change));
  changed_.notify_all();
}

membership::SharedView ViewBoard::view() const {
  MutexLock lock(mutex_);
  return view_;
}

std::optional<Error> ViewBoard::out() const {
  MutexLock lock(mutex_);
  return out_;
}

Status ViewBoard::wait_until_in_or_out(TimePoint until) const {
  MutexLock lock(mutex_);
  while (!view_ && !out_)
    if (changed_.wait_until(mutex_, until) == std::cv_status::timeout && !view_ && !out_)
      return {Code::deadline_exceeded, "the cluster did not answer in time"};
  return {};
}

Status ViewBoard::wait_until_out(TimePoint until) const {
  MutexLock lock(mutex_);
  while (!out_)
    if (changed_.wait_until(mutex_, until) == std::cv_status::timeout && !out_)
      return {Code::deadline_exceeded, "this node is still in the cluster"};
  return {};
}

Status ViewBoard::wait_for_nodes(std::size_t count, TimePoint until, Duration timeout) const {
  MutexLock lock(mutex_);
  while (!out_ && nodes_with_slots() < count)
    if (changed_.wait_until(mutex_, until) == std::cv_status::timeout && !out_ &&
        nodes_with_slots() < count)
      return {
          Code::deadline_exceeded,
          fmt::format("{} of {} nodes are in the cluster after {:.3g} s; start more, or wait "
                      "longer",
                      nodes_with_slots(), count, std::chrono::duration<double>(timeout).count())};
  if (out_) return {Code::unavailable, out_->message};
  return {};
}

std::size_t ViewBoard::nodes_with_slots() const {
  if (!view_) return 0;
  return static_cast<std::size_t>(std::count_if(view_->members.begin(), view_->members.end(),
                                                [](const Member& m) { return m.slots > 0; }));
}

std::uint64_t ViewBoard::subscribe(Runtime::ViewCallback on_change) {
  MutexLock lock(mutex_);
  subscribers_[++last_subscription_] =
      std::make_shared<Runtime::ViewCallback>(std::move(on_change));
  return last_subscription_;
}

void ViewBoard::unsubscribe(std::uint64_t subscription) {
  MutexLock lock(mutex_);
  subscribers_.erase(subscription);
  if (std::this_thread::get_id() == thread_.get_id()) return;  // from inside the call itself
  while (running_ == subscription && subscription != 0) changed_.wait(mutex_);
}

void ViewBoard::run() {
  ::pthread_setname_np(::pthread_self(), "troupe.views");
  MutexLock lock(mutex_);
  for (;;) {
    while (queue_.empty() && !stopping_) changed_.wait(mutex_);
    if (queue_.empty()) return;
    const Change change = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    deliver(change);
    lock.lock();
  }
}

void ViewBoard::deliver(const Change& change) {
  for (const auto& departure : change.departures) on_departure_(departure);
  if (!change.view) return;
  std::vector<std::uint64_t> subscriptions;
  {
    MutexLock lock(mutex_);
    for (const auto& [number, callback] : subscribers_) subscriptions.push_back(number);
  }
  for (const auto subscription : subscriptions) call(subscription, change);
}

void ViewBoard::call(std::uint64_t subscription, const Change& change) {
  std::shared_ptr<Runtime::ViewCallback> callback;
  {
    MutexLock lock(mutex_);
    const auto it = subscribers_.find(subscription);
    if (it == subscribers_.end()) return;
    callback = it->second;
    running_ = subscription;
  }
  (*callback)(*change.view, change.departures);
  MutexLock lock(mutex_);
  running_ = 0;
  changed_.notify_all();
}

}  // namespace troupe::cluster
