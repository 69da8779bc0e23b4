#include "runtime/observe/log.hpp"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;

/// A log into a list of lines, at 2026-03-01T10:15:30.123456Z.
struct Lines : testing::Test {
  Log open(LogLevel level, std::string node = "node-1") {
    Log::Options options;
    options.level = level;
    options.node = std::move(node);
    options.write = [this](std::string_view line) { lines.emplace_back(line); };
    options.clock = [] {
      return std::chrono::system_clock::time_point(std::chrono::microseconds(1772360130123456));
    };
    auto log = Log::open(std::move(options));
    EXPECT_TRUE(log.ok());
    return std::move(log).value();
  }
  /// The last line from behind the thread's number.
  std::string tail() const {
    const auto& line = lines.back();
    std::size_t at = 0;
    for (int i = 0; i < 4; ++i) at = line.find(' ', at) + 1;
    return line.substr(at);
  }
  std::vector<std::string> lines;
};

TEST_F(Lines, a_line_has_time_level_node_thread_message_and_fields) {
  auto log = open(LogLevel::info);
  log.info("joined", {{"generation", 3}, {"head", "127.0.0.1:7000"}, {"late", false}, {"s", 0.5}});
  EXPECT_THAT(lines, ElementsAre(MatchesRegex(
                         "2026-03-01T10:15:30\\.123456Z info node-1 [0-9]+ joined generation=3 "
                         "head=127\\.0\\.0\\.1:7000 late=false s=0\\.5\n")));
}

TEST_F(Lines, a_log_is_silent_by_default) {
  auto log = open(Log::Options{}.level);
  log.error("nobody hears this");
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_FALSE(log.enabled(LogLevel::error));
  Log().error("nor this");
}

TEST_F(Lines, a_level_hides_those_below_it) {
  auto log = open(LogLevel::warning);
  log.info("a");
  log.warning("b");
  log.error("c");
  EXPECT_EQ(lines.size(), 2u);
  log.set_level(LogLevel::debug);
  log.debug("d");
  EXPECT_EQ(lines.size(), 3u);
  log.set_level(LogLevel::off);
  log.error("e");
  log.write(LogLevel::off, "f");
  EXPECT_EQ(lines.size(), 3u);
}

TEST_F(Lines, values_that_are_not_one_word_are_quoted) {
  auto log = open(LogLevel::info);
  log.info("m", {{"a", "two words"}, {"b", ""}, {"c", "x=y"}, {"d", "say \"hi\" \\"}});
  EXPECT_EQ(tail(), "m a=\"two words\" b=\"\" c=\"x=y\" d=\"say \\\"hi\\\" \\\\\"\n");
}

TEST_F(Lines, nobody_can_forge_a_line) {
  auto log = open(LogLevel::info, "n%v\n2026");
  log.info("a\nb", {{"k\n", "v\n2026 error"}, {"bell", std::string("\x07")}});
  EXPECT_EQ(tail(), "a\\nb k\\n=\"v\\n2026 error\" bell=\\x07\n");
  EXPECT_THAT(lines.back(), testing::HasSubstr(" info n%v\\n2026 "));
}

TEST_F(Lines, braces_in_a_message_are_braces) {
  auto log = open(LogLevel::info);
  log.info("{} {0}", {{"f", "{}"}});
  EXPECT_EQ(tail(), "{} {0} f={}\n");
}

TEST_F(Lines, lines_of_several_threads_do_not_mix) {
  auto log = open(LogLevel::info);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) log.info("line", {{"i", i}});
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lines.size(), 400u);
}

TEST(Log, two_logs_of_one_process_do_not_know_each_other) {
  std::string a, b;
  Log::Options options;
  options.level = LogLevel::info;
  options.write = [&](std::string_view line) { a += line; };
  auto first = Log::open(options);
  options.write = [&](std::string_view line) { b += line; };
  auto second = Log::open(options);
  ASSERT_TRUE(first.ok() && second.ok());
  first->info("one");
  second->set_level(LogLevel::off);
  first->info("two");
  EXPECT_THAT(a, testing::HasSubstr("two"));
  EXPECT_EQ(b, "");
}

TEST(Log, appends_to_a_file) {
  const std::string path = testing::TempDir() + "troupe_log_test.log";
  std::remove(path.c_str());
  Log::Options options;
  options.level = LogLevel::info;
  options.file = path;
  for (const char* message : {"first", "second"}) {
    auto log = Log::open(options);
    ASSERT_TRUE(log.ok());
    log->info(message);
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), MatchesRegex(".* first\n.* second\n"));
  std::remove(path.c_str());
}

TEST(Log, a_file_that_cannot_be_opened_is_named) {
  Log::Options options;
  options.file = "/proc/no/such/file";
  auto log = Log::open(options);
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.code(), Code::io_error);
  EXPECT_THAT(log.error().message, testing::HasSubstr("'/proc/no/such/file'"));
}

TEST(Log, levels_are_read_by_name) {
  for (auto level :
       {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error, LogLevel::off})
    EXPECT_EQ(*parse_log_level(to_string(level)), level);
  EXPECT_EQ(parse_log_level("loud").error().message,
            "'loud' is no log level; use debug, info, warning, error or off");
}

}  // namespace
}  // namespace troupe
