#include "actors/job/job_queue.hpp"

#include <utility>

namespace troupe::train {

void JobQueue::start(MakeObserver make_observer) {
  thread_ = std::thread([this, make_observer = std::move(make_observer)] { work(make_observer); });
}

void JobQueue::push(QueuedJob job) {
  MutexLock lock(mutex_);
  waiting_.push_back(std::move(job));
  changed_.notify_all();
}

bool JobQueue::cancel(std::uint64_t job) {
  MutexLock lock(mutex_);
  for (auto& x : waiting_)
    if (x.job == job && x.inherited && x.inherited->begun) {  // its actors wait to be told
      x.inherited->cancelled = true;
      return false;
    }
  if (std::erase_if(waiting_, [job](const QueuedJob& x) { return x.job == job; }) > 0) return true;
  if (running_ != nullptr && running_job_ == job) running_->cancel();
  return false;
}

void JobQueue::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    if (running_ != nullptr) running_->cancel();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::optional<QueuedJob> JobQueue::next() {
  MutexLock lock(mutex_);
  while (!stopping_ && waiting_.empty()) changed_.wait(mutex_);
  if (stopping_) return std::nullopt;
  QueuedJob job = std::move(waiting_.front());
  waiting_.pop_front();
  return job;
}

void JobQueue::work(const MakeObserver& make_observer) {
  while (auto job = next()) {
    const auto observer = make_observer(job->job);
    JobRunner::Options options;
    options.job = job->job;
    options.resume = job->resume;
    options.nodes = job->nodes;
    options.inherited = job->inherited;
    JobRunner runner(runtime_, std::move(job->config), std::move(options), *observer);
    {
      MutexLock lock(mutex_);
      running_ = &runner;
      running_job_ = job->job;
      if (stopping_) runner.cancel();
    }
    (void)runner.run();  // its end was told to the observer
    MutexLock lock(mutex_);
    running_ = nullptr;
  }
}

}  // namespace troupe::train
