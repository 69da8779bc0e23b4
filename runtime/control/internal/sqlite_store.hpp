#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/mutex.hpp"
#include "runtime/control/internal/file_lock.hpp"
#include "runtime/control/internal/sqlite_database.hpp"
#include "runtime/control/internal/tenure.hpp"
#include "runtime/control/internal/wait.hpp"
#include "runtime/control/internal/writer.hpp"
#include "runtime/control/store.hpp"

namespace troupe::control {

/// A store in a file, for one machine. Who holds the lock beside it leads; only the leader opens
/// the database. The lead is lost when somebody removes or replaces the lock's file, which is
/// looked at a few times per lease.
class SqliteStore final : public Store {
public:
  SqliteStore(std::string path, StoreOptions options);
  ~SqliteStore() override;

  Result<std::uint64_t> lead(Duration timeout, Lost on_lost) override;
  void cancel() override { cancelled_.raise(); }
  Result<std::map<std::string, std::string>> read() override;
  void put(std::string key, std::string value) override;
  void erase(std::string key) override;
  Status flush(Duration timeout) override { return writer_.flush(timeout); }

private:
  Result<FileLock> wait_for_lock(TimePoint until);
  Status write(const Changes& changes);
  Duration check_lock();

  const std::string path_;
  const StoreOptions options_;
  Interrupt cancelled_;
  Mutex mutex_;
  // In this order: the database is closed before another may open it.
  std::optional<FileLock> lock_;  ///< of the leader; set before its threads start
  std::optional<SqliteDatabase> database_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t term_ TROUPE_GUARDED_BY(mutex_) = 0;
  Tenure tenure_;
  Writer writer_;
  Beat beat_;
};

}  // namespace troupe::control
