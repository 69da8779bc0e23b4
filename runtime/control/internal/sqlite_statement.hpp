#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sqlite3.h>

namespace troupe::control {

/// One SQL statement, finalized at the end of scope. Threads: one at a time.
class SqliteStatement {
public:
  SqliteStatement(sqlite3* database, const char* sql) {
    code_ = ::sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
  }
  ~SqliteStatement() { ::sqlite3_finalize(statement_); }
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  /// Borrowed until the next reset(). An empty one is an empty blob, not null.
  void bind(int at, std::string_view bytes) {
    if (code_ != SQLITE_OK) return;
    code_ = ::sqlite3_bind_blob64(statement_, at, bytes.empty() ? "" : bytes.data(), bytes.size(),
                                  SQLITE_STATIC);
  }
  void bind(int at, std::int64_t number) {
    if (code_ == SQLITE_OK) code_ = ::sqlite3_bind_int64(statement_, at, number);
  }
  /// SQLITE_ROW, SQLITE_DONE or an error, also of what came before.
  int step() { return code_ != SQLITE_OK ? code_ : ::sqlite3_step(statement_); }
  void reset() {
    if (code_ == SQLITE_OK) ::sqlite3_reset(statement_);
  }

  int type(int column) { return ::sqlite3_column_type(statement_, column); }
  std::int64_t number(int column) { return ::sqlite3_column_int64(statement_, column); }
  std::string bytes(int column) {
    const void* const data = ::sqlite3_column_blob(statement_, column);
    const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column));
    return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
  }

private:
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
};

}  // namespace troupe::control
