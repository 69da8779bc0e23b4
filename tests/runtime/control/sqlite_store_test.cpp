#include <filesystem>
#include <fstream>

#include "runtime/control/store.hpp"
#include "tests/runtime/control/store_fixture.hpp"

namespace troupe::control {
namespace {

Error refusal(const std::string& path) {
  const auto term = open(path)->lead(seconds(20), nullptr);
  EXPECT_FALSE(term.ok());
  return term.ok() ? Error{Code::ok, ""} : term.error();
}

TEST(SqliteStore, refuses_a_path_that_it_cannot_write_and_says_why) {
  const TemporaryFolder folder;
  const Error missing = refusal(folder / "no/such/store.db");
  EXPECT_EQ(missing.code, Code::not_found);
  EXPECT_NE(missing.message.find("make its folder first"), std::string::npos);
  EXPECT_EQ(refusal("/sys/store.db").code, Code::permission_denied);
  std::filesystem::create_directory(folder / "folder");
  EXPECT_EQ(refusal(folder / "folder").code, Code::io_error);
}

TEST(SqliteStore, refuses_a_file_that_is_no_database) {
  const TemporaryFolder folder;
  std::ofstream(folder / "store.db") << std::string(8192, 'x');
  const Error error = refusal(folder / "store.db");
  EXPECT_EQ(error.code, Code::corrupt_data);
  EXPECT_NE(error.message.find("store.db' is damaged or no store"), std::string::npos);
}

TEST(SqliteStore, refuses_a_damaged_file) {
  const TemporaryFolder folder;
  const std::string path = folder / "store.db";
  {
    const auto store = open(path);
    ASSERT_TRUE(store->lead(seconds(20), nullptr).ok());
    for (int i = 0; i < 1000; ++i) store->put(std::to_string(i), std::string(200, 'x'));
    ASSERT_TRUE(store->flush(seconds(20)).ok());
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  const std::string noise(3 * 4096, '\x5a');
  file.write(noise.data(), static_cast<std::streamsize>(noise.size()));
  file.close();
  EXPECT_EQ(refusal(path).code, Code::corrupt_data);
}

TEST(SqliteStore, lets_go_of_the_lock_when_the_file_is_refused) {
  const TemporaryFolder folder;
  const std::string path = folder / "store.db";
  std::ofstream(path) << std::string(8192, 'x');
  const auto store = open(path);
  ASSERT_EQ(store->lead(seconds(20), nullptr).code(), Code::corrupt_data);
  std::filesystem::remove(path);
  EXPECT_TRUE(open(path)->lead(Duration::zero(), nullptr).ok());
  EXPECT_TRUE(store->lead(Duration::zero(), nullptr).ok());  // again, with the reason gone
}

TEST(SqliteStore, is_lost_when_somebody_removes_its_lock_and_leads) {
  const TemporaryFolder folder;
  const std::string path = folder / "store.db";
  LostRecorder lost;
  const auto first = open(path);
  ASSERT_TRUE(first->lead(seconds(20), lost.callback()).ok());
  first->put("a", "first");
  ASSERT_TRUE(first->flush(seconds(20)).ok());

  std::filesystem::remove(path + ".lock");
  const auto second = open(path);
  ASSERT_TRUE(second->lead(seconds(20), nullptr).ok());
  first->put("a", "too late");
  const auto why = lost.wait();
  ASSERT_TRUE(why.has_value());
  EXPECT_FALSE(first->flush(seconds(20)).ok());
  EXPECT_EQ(first->read().code(), Code::failed_precondition);
  EXPECT_EQ(second->read().value().at("a"), "first");
  EXPECT_EQ(lost.count(), 1u);
}

}  // namespace
}  // namespace troupe::control
