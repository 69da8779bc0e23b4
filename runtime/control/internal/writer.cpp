#include "runtime/control/internal/writer.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/check.hpp"
#include "runtime/control/internal/wait.hpp"
#include "runtime/control/store.hpp"

namespace troupe::control {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(50);

std::size_t size_of(const std::string& key, const std::optional<std::string>& value) {
  return key.size() + (value ? value->size() : 0);
}

Status check_bounds(const std::string& key, const std::optional<std::string>& value) {
  if (key.empty() || key.size() > kMaxKeyBytes)
    return {Code::invalid_argument,
            fmt::format("a key of {} bytes was not written; a store takes 1 to {}", key.size(),
                        kMaxKeyBytes)};
  if (value && value->size() > kMaxValueBytes)
    return {Code::invalid_argument,
            fmt::format("the value of '{}' has {} bytes and was not written; a store takes at most "
                        "{}: split it",
                        key.substr(0, 64), value->size(), kMaxValueBytes)};
  return {};
}

}  // namespace

Writer::Writer(Options options)
    : options_(std::move(options)),
      abandoned_(Error{Code::failed_precondition, "this store is not led from here; call lead()"}),
      pause_(kFirstPause) {}

void Writer::start() {
  TROUPE_CHECK(!thread_.joinable(), "a writer that was started");
  MutexLock lock(mutex_);
  abandoned_.reset();
  thread_ = std::thread([this] { run(); });
}

Writer::Batch& Writer::open_batch(const std::string& key, std::size_t bytes) {
  if (waiting_.empty()) return waiting_.emplace_back();
  Batch& last = waiting_.back();
  const auto known = last.changes.find(key);
  const bool is_new = known == last.changes.end();
  const std::size_t before = is_new ? 0 : size_of(key, known->second);
  const bool fits = last.changes.size() + (is_new ? 1 : 0) <= options_.max_changes &&
                    last.bytes - before + bytes <= options_.max_bytes;
  if (!fits && !(last.changes.size() == 1 && !is_new)) return waiting_.emplace_back();
  last.bytes -= before;
  return last;
}

void Writer::put(std::string key, std::optional<std::string> value) {
  const Status bounds = check_bounds(key, value);
  MutexLock lock(mutex_);
  if (abandoned_) return;
  if (!bounds.ok()) {
    dropped_ = bounds.error();
    return;
  }
  const std::size_t bytes = size_of(key, value);
  Batch& batch = open_batch(key, bytes);
  batch.changes.insert_or_assign(std::move(key), std::move(value));
  batch.bytes += bytes;
  batch.last = ++last_put_;
  changed_.notify_all();
}

Status Writer::flush(Duration timeout) {
  const TimePoint until = deadline_after(timeout);
  MutexLock lock(mutex_);
  const std::uint64_t mine = last_put_;
  ++flushing_;
  changed_.notify_all();
  while (!abandoned_ && last_written_ < mine && std::chrono::steady_clock::now() < until)
    changed_.wait_until(mutex_, until);
  --flushing_;
  if (abandoned_) return *abandoned_;
  if (last_written_ < mine) {
    if (failed_) return *failed_;
    return {Code::deadline_exceeded,
            fmt::format("{} changes of the store's keys are not written after {} ms; give it more "
                        "time",
                        mine - last_written_,
                        std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count())};
  }
  if (auto dropped = std::exchange(dropped_, std::nullopt)) return *std::move(dropped);
  return {};
}

void Writer::abandon(Error why) {
  MutexLock lock(mutex_);
  abandoned_ = std::move(why);
  waiting_.clear();
  changed_.notify_all();
}

void Writer::stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool Writer::due(TimePoint now) const {
  if (waiting_.empty()) return false;
  if (now >= next_) return true;
  // Nothing to collect for: somebody waits, or the next batch is full already.
  return !failed_ && (flushing_ > 0 || waiting_.size() > 1);
}

void Writer::write_next() {
  Batch batch = std::move(waiting_.front());
  waiting_.pop_front();
  next_ = std::chrono::steady_clock::now() + options_.period;
  mutex_.unlock();
  Status status = options_.write(batch.changes);
  mutex_.lock();
  if (status.ok()) {
    last_written_ = batch.last;
    failed_.reset();
    pause_ = kFirstPause;
  } else {
    failed_ = std::move(status).error();
    next_ = std::chrono::steady_clock::now() + pause_;
    pause_ = std::min(2 * pause_, options_.max_pause);
    if (!abandoned_) waiting_.push_front(std::move(batch));
  }
  changed_.notify_all();
}

void Writer::run() {
  MutexLock lock(mutex_);
  while (!stopped_) {
    if (due(std::chrono::steady_clock::now())) {
      write_next();
    } else if (waiting_.empty()) {
      changed_.wait(mutex_);
    } else {
      changed_.wait_until(mutex_, next_);
    }
  }
}

}  // namespace troupe::control
