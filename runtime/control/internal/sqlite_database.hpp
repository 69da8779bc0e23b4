#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "runtime/base/status.hpp"
#include "runtime/control/internal/writer.hpp"

struct sqlite3;

namespace troupe::control {

/// The file of a SQLite store: the term of its newest leader, and the keys. In WAL mode, so that a
/// killed process leaves it whole; a power failure may take the last moments' writes, but no term.
///
/// Threads: one at a time.
/// Failure: every transaction is done as a whole or not at all.
class SqliteDatabase {
public:
  /// Opens or creates it. Errors: `not_found`, `permission_denied`, `io_error`, `corrupt_data` for
  /// what is no database, damaged or of another program, `version_mismatch` for another schema.
  static Result<SqliteDatabase> open(const std::string& path);

  /// A new leader: the stored term plus one, on the disk when this returns.
  Result<std::uint64_t> next_term();
  Result<std::map<std::string, std::string>> read();
  /// Error: `failed_precondition` if there was a later leader than that of `term`.
  Status write(std::uint64_t term, const Changes& changes);

private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  class Transaction;

  SqliteDatabase(std::string path, std::unique_ptr<sqlite3, Close> database);

  Status prepare();
  Status check_schema();
  Status create_schema();
  Status run(const char* sql);
  Result<std::int64_t> number(const char* sql);
  Result<std::string> text(const char* sql);
  Result<std::uint64_t> stored_term();
  Error error(int code) const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace troupe::control
