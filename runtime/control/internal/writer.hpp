#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "runtime/base/clock.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"

namespace troupe::control {

/// Changes by key, the newest of each; nullopt erases.
using Changes = std::map<std::string, std::optional<std::string>>;

/// Writes behind its callers' backs: collects changes into batches, and hands them to a function on
/// a thread of its own, one after the other. The first goes at once; those that follow are
/// collected for a while, unless somebody waits for them.
///
/// A change joins the newest batch that is not under way, in place of an earlier one of its key,
/// and opens another if that batch is full; so each batch holds what happened between two moments.
/// A batch that fails is tried again, with longer and longer pauses.
///
/// Threads:   any; start() and stop() from one at a time.
/// Failure:   see flush().
class Writer {
public:
  struct Options {
    /// On the writer's thread.
    std::function<Status(const Changes&)> write;
    std::size_t max_changes = SIZE_MAX;               ///< of a batch
    std::size_t max_bytes = SIZE_MAX;                 ///< of a batch that has more than one change
    Duration period = std::chrono::milliseconds(50);  ///< between the starts of batches
    Duration max_pause = std::chrono::milliseconds(500);  ///< before a batch is tried again
  };

  explicit Writer(Options options);
  ~Writer() { stop(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Once. Changes before it are dropped.
  void start();
  void put(std::string key, std::optional<std::string> value);
  /// Waits until all changes so far are written. Errors: that of abandon(); once, why a change was
  /// dropped; at the end of the time why the last write failed, else `deadline_exceeded`.
  Status flush(Duration timeout);
  /// Drops what waits and what is put from now on.
  void abandon(Error why);
  /// Ends the thread after the batch under way.
  void stop();

private:
  struct Batch {
    Changes changes;
    std::size_t bytes = 0;
    std::uint64_t last = 0;  ///< number of its newest change
  };

  Batch& open_batch(const std::string& key, std::size_t bytes) TROUPE_REQUIRES(mutex_);
  bool due(TimePoint now) const TROUPE_REQUIRES(mutex_);
  void write_next() TROUPE_REQUIRES(mutex_);
  void run();

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Batch> waiting_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t last_put_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_written_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::optional<Error> abandoned_ TROUPE_GUARDED_BY(mutex_);
  std::optional<Error> dropped_ TROUPE_GUARDED_BY(mutex_);  ///< a change, since the last flush()
  std::optional<Error> failed_ TROUPE_GUARDED_BY(mutex_);   ///< the last write
  TimePoint next_ TROUPE_GUARDED_BY(mutex_);                ///< not before
  Duration pause_ TROUPE_GUARDED_BY(mutex_);                ///< after the next failure
  int flushing_ TROUPE_GUARDED_BY(mutex_) = 0;              ///< callers that wait
  bool stopped_ TROUPE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe::control
