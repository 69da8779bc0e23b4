#include "runtime/control/internal/sqlite_database.hpp"

#include <cerrno>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "runtime/control/internal/file_lock.hpp"
#include "runtime/control/internal/sqlite_statement.hpp"

namespace troupe::control {
namespace {

constexpr std::int64_t kApplication = 0x54525550;  // "TRUP"
constexpr std::int64_t kSchema = 1;
constexpr int kMaxRowBytes = 2 << 20;    // more than we write
constexpr int kBusyMilliseconds = 1000;  // somebody looks at it with another program

constexpr const char* kCreate = R"(
  CREATE TABLE leader (one INTEGER PRIMARY KEY CHECK (one = 1), term INTEGER NOT NULL) STRICT;
  CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT;
  INSERT INTO leader VALUES (1, 0);
  PRAGMA application_id = 1414681936;
  PRAGMA user_version = 1;
)";
static_assert(kApplication == 1414681936 && kSchema == 1);

}  // namespace

/// Rolled back at the end of scope unless it was committed.
class SqliteDatabase::Transaction {
public:
  explicit Transaction(SqliteDatabase& database) : database_(database) {}
  ~Transaction() {
    if (open_) (void)database_.run("ROLLBACK").ok();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  Status begin() {
    TROUPE_TRY(database_.run("BEGIN IMMEDIATE"));
    open_ = true;
    return {};
  }
  Status commit() {
    TROUPE_TRY(database_.run("COMMIT"));
    open_ = false;
    return {};
  }

private:
  SqliteDatabase& database_;
  bool open_ = false;
};

void SqliteDatabase::Close::operator()(sqlite3* database) const {
  ::sqlite3_close(database);
}

SqliteDatabase::SqliteDatabase(std::string path, std::unique_ptr<sqlite3, Close> database)
    : path_(std::move(path)), database_(std::move(database)) {}

Error SqliteDatabase::error(int code) const {
  sqlite3* const database = database_.get();
  const std::string what = ::sqlite3_errmsg(database);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_TOOBIG:
    case SQLITE_ERROR:  // of our statements: the tables are not there
      return {Code::corrupt_data,
              fmt::format("the store '{}' is damaged or no store ({}); move it away, or restore it "
                          "from a copy",
                          path_, what)};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return file_error(path_, EACCES);
    case SQLITE_FULL:
      return {Code::io_error,
              fmt::format("the store '{}' cannot be written ({}); free space on its disk", path_,
                          what)};
    case SQLITE_CANTOPEN:
      if (const int number = ::sqlite3_system_errno(database); number != 0)
        return file_error(path_, number);
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Code::unavailable,
              fmt::format("the store '{}' is locked by another program ({}); end it", path_, what)};
    case SQLITE_NOMEM:
      return {Code::resource_exhausted, fmt::format("no memory for the store '{}'", path_)};
    default:
      break;
  }
  return {
      Code::io_error,
      fmt::format("the store '{}' cannot be used ({}); look at its disk and folder", path_, what)};
}

Result<SqliteDatabase> SqliteDatabase::open(const std::string& path) {
  sqlite3* opened = nullptr;
  // Never a URI, whatever the path looks like.
  const std::string plain = path.starts_with('/') ? path : "./" + path;
  const int code = ::sqlite3_open_v2(
      plain.c_str(), &opened,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  SqliteDatabase database(path, std::unique_ptr<sqlite3, Close>(opened));
  if (code != SQLITE_OK) return database.error(code);
  TROUPE_TRY(database.prepare());
  return database;
}

Status SqliteDatabase::prepare() {
  ::sqlite3_busy_timeout(database_.get(), kBusyMilliseconds);
  // The file is not trusted: it does not choose how much memory a row takes, and what its schema
  // says runs no functions.
  ::sqlite3_limit(database_.get(), SQLITE_LIMIT_LENGTH, kMaxRowBytes);
  TROUPE_TRY(run("PRAGMA trusted_schema = OFF"));
  TROUPE_ASSIGN(const auto objects, number("SELECT count(*) FROM sqlite_schema"));
  if (::sqlite3_db_readonly(database_.get(), "main") == 1) return file_error(path_, EACCES);
  TROUPE_ASSIGN(const auto application, number("PRAGMA application_id"));
  if (objects != 0 || application != 0) {
    TROUPE_TRY(check_schema());
    TROUPE_ASSIGN(const auto verdict, text("PRAGMA quick_check(1)"));
    if (verdict != "ok")
      return {Code::corrupt_data,
              fmt::format("the store '{}' is damaged ({}); move it away, or restore it from a copy",
                          path_, verdict.substr(0, 200))};
  }
  TROUPE_ASSIGN(const auto mode, text("PRAGMA journal_mode = WAL"));
  if (mode != "wal")
    return {Code::not_supported,
            fmt::format("the store '{}' is on a file system without shared memory; choose one of "
                        "this machine",
                        path_)};
  TROUPE_TRY(run("PRAGMA synchronous = NORMAL"));
  return objects == 0 && application == 0 ? create_schema() : Status{};
}

Status SqliteDatabase::check_schema() {
  TROUPE_ASSIGN(const auto application, number("PRAGMA application_id"));
  if (application != kApplication)
    return {Code::corrupt_data,
            fmt::format("'{}' is a database of another program; choose another path", path_)};
  TROUPE_ASSIGN(const auto schema, number("PRAGMA user_version"));
  if (schema != kSchema)
    return {Code::version_mismatch,
            fmt::format("the store '{}' has schema {}, this program knows {}; use the program that "
                        "made it, or move it away",
                        path_, schema, kSchema)};
  return {};
}

Status SqliteDatabase::create_schema() {
  Transaction transaction(*this);
  TROUPE_TRY(transaction.begin());
  TROUPE_TRY(run(kCreate));
  return transaction.commit();
}

Status SqliteDatabase::run(const char* sql) {
  const int code = ::sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status{} : Status{error(code)};
}

Result<std::int64_t> SqliteDatabase::number(const char* sql) {
  SqliteStatement statement(database_.get(), sql);
  if (const int code = statement.step(); code != SQLITE_ROW) return error(code);
  return statement.number(0);
}

Result<std::string> SqliteDatabase::text(const char* sql) {
  SqliteStatement statement(database_.get(), sql);
  if (const int code = statement.step(); code != SQLITE_ROW) return error(code);
  return statement.bytes(0);
}

Result<std::uint64_t> SqliteDatabase::stored_term() {
  SqliteStatement statement(database_.get(), "SELECT term FROM leader");
  const int code = statement.step();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return error(code);
  const std::int64_t term = code == SQLITE_ROW ? statement.number(0) : -1;
  if (term < 0 || term == std::numeric_limits<std::int64_t>::max())
    return {Code::corrupt_data,
            fmt::format("the store '{}' has no term that makes sense ({}); restore it from a copy",
                        path_, term)};
  return static_cast<std::uint64_t>(term);
}

Result<std::uint64_t> SqliteDatabase::next_term() {
  TROUPE_TRY(run("PRAGMA synchronous = FULL"));
  Transaction transaction(*this);
  TROUPE_TRY(transaction.begin());
  TROUPE_TRY(stored_term());
  TROUPE_TRY(run("UPDATE leader SET term = term + 1"));
  TROUPE_ASSIGN(const auto term, stored_term());
  TROUPE_TRY(transaction.commit());
  TROUPE_TRY(run("PRAGMA synchronous = NORMAL"));
  return term;
}

Result<std::map<std::string, std::string>> SqliteDatabase::read() {
  std::map<std::string, std::string> entries;
  SqliteStatement statement(database_.get(), "SELECT key, value FROM entries");
  int code = 0;
  while ((code = statement.step()) == SQLITE_ROW)
    entries.insert_or_assign(statement.bytes(0), statement.bytes(1));
  if (code != SQLITE_DONE) return error(code);
  return entries;
}

Status SqliteDatabase::write(std::uint64_t term, const Changes& changes) {
  Transaction transaction(*this);
  TROUPE_TRY(transaction.begin());
  TROUPE_ASSIGN(const auto stored, stored_term());
  if (stored != term)
    return {Code::failed_precondition,
            fmt::format("the store '{}' had a leader of term {} after this one's {}", path_, stored,
                        term)};
  SqliteStatement put(database_.get(), "INSERT OR REPLACE INTO entries VALUES (?1, ?2)");
  SqliteStatement erase(database_.get(), "DELETE FROM entries WHERE key = ?1");
  for (const auto& [key, value] : changes) {
    SqliteStatement& statement = value ? put : erase;
    statement.reset();
    statement.bind(1, key);
    if (value) statement.bind(2, *value);
    if (const int code = statement.step(); code != SQLITE_DONE) return error(code);
  }
  put.reset();
  erase.reset();
  return transaction.commit();
}

}  // namespace troupe::control
