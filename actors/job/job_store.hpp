#pragma once

#include <cstdint>
#include <map>

#include "actors/job/messages.hpp"
#include "runtime/base/status.hpp"
#include "runtime/control/store.hpp"

namespace troupe::train {

/// A job as the head knows it, and the next one has to.
struct KnownJob {
  SubmitJob request;
  JobRecord record;
  bool begun = false;            ///< its first step was about to begin
  std::uint64_t first_step = 0;  ///< that it began with
  std::uint64_t epochs = 0;      ///< whose tests are done
  bool cancelled = false;        ///< somebody asked for its end

  bool over() const { return record.state != "waiting" && record.state != "running"; }
};

/// The job table in a head's control store, or nowhere if it has none.
///
/// Ownership: borrows the store. Threads: any.
class JobStore {
public:
  explicit JobStore(control::Store* store) : store_(store) {}

  /// All jobs, by number. Errors: those of the store, `corrupt_data` naming the key.
  Result<std::map<std::uint64_t, KnownJob>> read() const;

  /// A new job: returns when it is written.
  Status add(const KnownJob& job) const;
  /// Its first step is about to begin: returns when it is written.
  Status begin(std::uint64_t job) const;
  /// How far it is: written soon.
  void update(const KnownJob& job) const;
  void remove(std::uint64_t job) const;

private:
  control::Store* store_;
};

}  // namespace troupe::train
