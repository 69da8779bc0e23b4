#include "runtime/observe/trace.hpp"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using nlohmann::json;

std::vector<json> spans(const Trace& trace) {
  const json whole = json::parse(trace.json());
  std::vector<json> found;
  for (const auto& event : whole.at("traceEvents"))
    if (event.at("ph") == "X") found.push_back(event);
  return found;
}

struct TraceTest : testing::Test {
  ManualClock clock;
};

TEST_F(TraceTest, a_span_has_a_beginning_and_a_length) {
  Trace trace({"node \"1\"", 7, 100, 8}, clock);
  clock.advance(std::chrono::seconds(5));
  trace.start();
  clock.advance(std::chrono::microseconds(10));
  {
    TraceSpan outer(trace, "step", 3);
    clock.advance(std::chrono::nanoseconds(500));
    TraceSpan inner(trace, "reduce");
    clock.advance(std::chrono::microseconds(2));
  }
  EXPECT_EQ(trace.json(),
            "{\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7,\"tid\":0,"
            "\"args\":{\"name\":\"node \\\"1\\\"\"}},\n"
            "{\"ph\":\"X\",\"name\":\"reduce\",\"pid\":7,\"tid\":1,\"ts\":10.500,\"dur\":2.000,"
            "\"args\":{\"n\":0}},\n"
            "{\"ph\":\"X\",\"name\":\"step\",\"pid\":7,\"tid\":1,\"ts\":10.000,\"dur\":2.500,"
            "\"args\":{\"n\":3}}\n"
            "],\"displayTimeUnit\":\"ms\"}\n");
}

TEST_F(TraceTest, nothing_is_recorded_unless_it_is_on) {
  Trace trace({}, clock);
  { TraceSpan before(trace, "before"); }
  trace.start();
  { TraceSpan during(trace, "during"); }
  {
    TraceSpan cut(trace, "cut");
    trace.stop();
  }
  { TraceSpan after(trace, "after"); }
  const auto found = spans(trace);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at("name"), "during");
}

TEST_F(TraceTest, starting_again_forgets_what_was) {
  Trace trace({}, clock);
  trace.start();
  { TraceSpan first(trace, "first"); }
  clock.advance(std::chrono::seconds(1));
  {
    TraceSpan across(trace, "across");
    clock.advance(std::chrono::seconds(1));
    trace.start();
  }
  { TraceSpan second(trace, "second"); }
  const auto found = spans(trace);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at("name"), "second");
  EXPECT_EQ(found[0].at("ts"), 0);
}

TEST_F(TraceTest, a_full_ring_keeps_the_newest) {
  Trace trace({"n", 0, 4, 8}, clock);
  trace.start();
  for (std::uint64_t i = 0; i < 10; ++i) TraceSpan span(trace, "s", i);
  const auto found = spans(trace);
  ASSERT_EQ(found.size(), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(found[i].at("args").at("n"), 6 + i);
}

TEST_F(TraceTest, each_thread_has_a_row_that_outlives_it) {
  Trace trace({"n", 0, 1000, 8}, clock);
  trace.start();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&trace, t] {
      for (int i = 0; i < 50; ++i) TraceSpan span(trace, "s", t);
    });
  (void)trace.json();  // while they write
  for (auto& thread : threads) thread.join();
  std::map<json, std::vector<json>> rows;
  for (const auto& span : spans(trace)) rows[span.at("tid")].push_back(span.at("args").at("n"));
  EXPECT_EQ(rows.size(), 4u);
  for (const auto& [tid, numbers] : rows) EXPECT_EQ(numbers, std::vector<json>(50, numbers[0]));
}

TEST_F(TraceTest, more_threads_than_the_limit_are_not_recorded) {
  Trace trace({"n", 0, 10, 2}, clock);
  trace.start();
  for (int t = 0; t < 5; ++t) std::thread([&] { TraceSpan span(trace, "s"); }).join();
  EXPECT_EQ(spans(trace).size(), 2u);
}

TEST_F(TraceTest, traces_of_one_process_do_not_know_each_other) {
  for (int round = 0; round < 3; ++round) {  // perhaps where the one before it has been
    Trace a({}, clock), b({}, clock);
    a.start();
    b.start();
    { TraceSpan span(a, "a"); }
    { TraceSpan span(b, "b"); }
    { TraceSpan span(a, "a"); }
    EXPECT_EQ(spans(a).size(), 2u);
    EXPECT_EQ(spans(b).size(), 1u);
  }
}

TEST_F(TraceTest, is_written_to_a_file) {
  Trace trace({}, clock);
  trace.start();
  { TraceSpan span(trace, "s"); }
  const std::string path = testing::TempDir() + "troupe_trace_test.json";
  ASSERT_TRUE(trace.write(path).ok());
  EXPECT_FALSE(trace.on());
  EXPECT_EQ(json::parse(std::ifstream(path)), json::parse(trace.json()));
  std::remove(path.c_str());
}

TEST_F(TraceTest, a_path_that_cannot_be_written_is_named) {
  Trace trace({}, clock);
  EXPECT_EQ(trace.write("/proc/no/such.json").error().message,
            "the trace cannot be written to '/proc/no/such.json'; choose a path that can be");
}

}  // namespace
}  // namespace troupe
