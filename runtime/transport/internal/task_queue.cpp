#include "runtime/transport/internal/task_queue.hpp"

#include <utility>

#include "runtime/transport/internal/poller.hpp"

namespace troupe::transport {

bool TaskQueue::post(std::function<void()> task) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  tasks_.push_back(std::move(task));
  const bool wake = std::exchange(sleeping_, false);
  lock.unlock();
  if (wake) poller_.wake();
  return true;
}

void TaskQueue::notify(PeerId peer) {
  MutexLock lock(mutex_);
  peers_.push_back(peer);
  const bool wake = std::exchange(sleeping_, false);
  lock.unlock();
  if (wake) poller_.wake();
}

bool TaskQueue::take(std::vector<std::function<void()>>& tasks, std::vector<PeerId>& peers) {
  MutexLock lock(mutex_);
  tasks.swap(tasks_);
  peers.swap(peers_);
  return !tasks.empty() || !peers.empty();
}

bool TaskQueue::begin_sleep() {
  MutexLock lock(mutex_);
  sleeping_ = tasks_.empty() && peers_.empty();
  return sleeping_;
}

void TaskQueue::end_sleep() {
  MutexLock lock(mutex_);
  sleeping_ = false;
}

void TaskQueue::close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

void Timers::run(TimePoint now) {
  while (!tasks_.empty() && tasks_.begin()->first <= now) {
    auto task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    task();
  }
}

}  // namespace troupe::transport
