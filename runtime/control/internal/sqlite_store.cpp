#include "runtime/control/internal/sqlite_store.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/control/internal/leader_name.hpp"

namespace troupe::control {
namespace {

constexpr Duration kPoll = std::chrono::milliseconds(50);
constexpr Duration kGoodbye = std::chrono::seconds(2);

}  // namespace

SqliteStore::SqliteStore(std::string path, StoreOptions options)
    : path_(std::move(path)),
      options_(std::move(options)),
      writer_({.write = [this](const Changes& changes) { return write(changes); }}) {}

SqliteStore::~SqliteStore() {
  if (tenure_.check().ok()) (void)writer_.flush(kGoodbye).ok();
  writer_.stop();
  beat_.stop();
  tenure_.end();
  if (lock_ && lock_->in_place()) (void)lock_->write_owner("").ok();
}

Result<FileLock> SqliteStore::wait_for_lock(TimePoint until) {
  const std::string path = path_ + ".lock";
  for (;;) {
    if (cancelled_.raised())
      return {Code::cancelled, fmt::format("waiting to lead the store '{}' was cancelled", path_)};
    TROUPE_ASSIGN(auto lock, FileLock::take(path));
    if (lock) return *std::move(lock);
    const TimePoint now = std::chrono::steady_clock::now();
    if (now >= until)
      return {Code::deadline_exceeded,
              fmt::format("the store '{}' is led by {}; stop it, stand by for it (`troupe head "
                          "--standby`), or choose another "
                          "store",
                          path_, shown_name(FileLock::owner(path)))};
    (void)cancelled_.wait_until(std::min(until, now + kPoll));
  }
}

Result<std::uint64_t> SqliteStore::lead(Duration timeout, Lost on_lost) {
  if (tenure_.begun())
    return {Code::failed_precondition,
            fmt::format("the store '{}' is or was led from here; open it again", path_)};
  TROUPE_ASSIGN(auto lock, wait_for_lock(deadline_after(timeout)));
  TROUPE_TRY(lock.write_owner(leader_name(options_)));
  TROUPE_ASSIGN(auto database, SqliteDatabase::open(path_));
  TROUPE_ASSIGN(const auto term, database.next_term());
  {
    MutexLock hold(mutex_);
    database_ = std::move(database);
    term_ = term;
  }
  lock_ = std::move(lock);
  writer_.start();
  tenure_.begin(TimePoint::max(), [this, lost = std::move(on_lost)](const Error& why) {
    writer_.abandon(why);
    if (lost) lost(why);
  });
  beat_.start(options_.lease / 4, [this] { return check_lock(); });
  return term;
}

Duration SqliteStore::check_lock() {
  if (!lock_->in_place())
    tenure_.lose({Code::unavailable,
                  fmt::format("the lock '{}.lock' was removed or replaced while it was held, so "
                              "another may lead the store; leave a store's files alone",
                              path_)});
  return options_.lease / 4;
}

Status SqliteStore::write(const Changes& changes) {
  TROUPE_TRY(tenure_.check());
  MutexLock hold(mutex_);
  Status written = database_->write(term_, changes);
  if (written.code() == Code::failed_precondition) tenure_.lose(written.error());
  return written;
}

Result<std::map<std::string, std::string>> SqliteStore::read() {
  TROUPE_TRY(tenure_.check());
  MutexLock hold(mutex_);
  return database_->read();
}

void SqliteStore::put(std::string key, std::string value) {
  writer_.put(std::move(key), std::move(value));
}

void SqliteStore::erase(std::string key) {
  writer_.put(std::move(key), std::nullopt);
}

}  // namespace troupe::control
