#include "runtime/control/internal/sqlite_database.hpp"

#include <sqlite3.h>

#include "tests/runtime/control/store_fixture.hpp"

namespace troupe::control {
namespace {

/// Does something to a file as another program would.
void tamper(const std::string& path, const char* sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(::sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(::sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  ::sqlite3_close(database);
}

TEST(SqliteDatabase, counts_terms_and_refuses_the_writes_of_older_ones) {
  const TemporaryFolder folder;
  auto first = SqliteDatabase::open(folder / "a.db").value();
  EXPECT_EQ(first.next_term().value(), 1u);
  EXPECT_TRUE(first.write(1, {{"a", "1"}, {"b", "2"}}).ok());
  auto second = SqliteDatabase::open(folder / "a.db").value();
  EXPECT_EQ(second.next_term().value(), 2u);
  EXPECT_EQ(first.write(1, {{"a", "late"}, {"b", std::nullopt}}).code(), Code::failed_precondition);
  EXPECT_TRUE(second.write(2, {{"b", std::nullopt}}).ok());
  EXPECT_EQ(second.read().value(), (std::map<std::string, std::string>{{"a", "1"}}));
}

TEST(SqliteDatabase, refuses_another_schema_and_other_programs) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.db";
  ASSERT_TRUE(SqliteDatabase::open(path).ok());
  tamper(path, "PRAGMA user_version = 7");
  const auto other = SqliteDatabase::open(path);
  ASSERT_EQ(other.code(), Code::version_mismatch);
  EXPECT_NE(other.error().message.find("schema 7, this program knows 1"), std::string::npos);

  tamper(folder / "b.db", "CREATE TABLE theirs (x)");
  const auto foreign = SqliteDatabase::open(folder / "b.db");
  ASSERT_EQ(foreign.code(), Code::corrupt_data);
  EXPECT_NE(foreign.error().message.find("another program"), std::string::npos);
}

TEST(SqliteDatabase, refuses_contents_that_make_no_sense) {
  for (const char* damage :
       {"DROP TABLE leader", "DELETE FROM leader", "UPDATE leader SET term = -1",
        "UPDATE leader SET term = 9223372036854775807"}) {
    const TemporaryFolder folder;
    const std::string path = folder / "a.db";
    ASSERT_TRUE(SqliteDatabase::open(path).ok());
    tamper(path, damage);
    auto database = SqliteDatabase::open(path);
    const Code code = database.ok() ? database->next_term().code() : database.code();
    EXPECT_EQ(code, Code::corrupt_data) << damage;
  }
  const TemporaryFolder folder;
  const std::string path = folder / "a.db";
  auto database = SqliteDatabase::open(path).value();
  tamper(path, "INSERT INTO entries VALUES (x'61', zeroblob(100000000))");
  EXPECT_EQ(database.read().code(), Code::corrupt_data);
}

TEST(SqliteDatabase, a_write_that_fails_leaves_what_was_there) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.db";
  auto database = SqliteDatabase::open(path).value();
  ASSERT_EQ(database.next_term().value(), 1u);
  ASSERT_TRUE(database.write(1, {{"a", "1"}}).ok());
  tamper(path, "CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END");
  EXPECT_FALSE(database.write(1, {{"a", "2"}, {"b", "2"}}).ok());
  tamper(path, "DROP TRIGGER full");
  EXPECT_EQ(database.read().value().at("a"), "1");
  EXPECT_TRUE(database.write(1, {{"a", "3"}}).ok());
}

}  // namespace
}  // namespace troupe::control
