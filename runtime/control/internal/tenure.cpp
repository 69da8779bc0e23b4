#include "runtime/control/internal/tenure.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/check.hpp"

namespace troupe::control {
namespace {

Error too_late() {
  return Error{Code::unavailable,
               "the store did not renew this leader's lease in time; another may lead by now: "
               "open the store again to wait for the next turn"};
}

}  // namespace

void Tenure::begin(TimePoint until, Store::Lost on_lost) {
  {
    MutexLock lock(mutex_);
    TROUPE_CHECK(!begun_, "a tenure that has begun");
    begun_ = true;
    until_ = until;
  }
  on_lost_ = std::move(on_lost);
  thread_ = std::thread([this] { run(); });
}

void Tenure::extend(TimePoint until) {
  MutexLock lock(mutex_);
  // One that is late must not be revived: whoever asked may have been told already.
  if (lost_ || ended_ || std::chrono::steady_clock::now() >= until_) return;
  until_ = std::max(until_, until);
  changed_.notify_all();
}

void Tenure::lose(Error why) {
  MutexLock lock(mutex_);
  if (lost_ || ended_) return;
  lost_ = std::move(why);
  changed_.notify_all();
}

void Tenure::end() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

TimePoint Tenure::until() const {
  MutexLock lock(mutex_);
  return until_;
}

bool Tenure::begun() const {
  MutexLock lock(mutex_);
  return begun_;
}

Status Tenure::check() const {
  MutexLock lock(mutex_);
  if (!begun_) return {Code::failed_precondition, "this store is not led from here; call lead()"};
  if (lost_)
    return {Code::failed_precondition, fmt::format("the lead is lost: {}", lost_->message)};
  if (ended_) return {Code::failed_precondition, "this store was resigned from; open another"};
  if (std::chrono::steady_clock::now() >= until_)
    return {Code::failed_precondition, fmt::format("the lead is lost: {}", too_late().message)};
  return {};
}

void Tenure::run() {
  MutexLock lock(mutex_);
  while (!ended_ && !lost_) {
    if (std::chrono::steady_clock::now() >= until_) {
      lost_ = too_late();
    } else {
      changed_.wait_until(mutex_, until_);
    }
  }
  if (ended_) return;
  const Error why = *lost_;
  lock.unlock();
  if (on_lost_) on_lost_(why);
}

}  // namespace troupe::control
