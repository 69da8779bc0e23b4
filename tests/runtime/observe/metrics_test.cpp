#include "runtime/observe/metrics.hpp"

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(Metrics, are_written_in_the_text_format_of_prometheus) {
  Metrics metrics;
  metrics.counter("troupe_steps_total", "Steps done.").add(41);
  metrics.counter("troupe_steps_total", "Steps done.").add();
  metrics.gauge("troupe_peers", "Peers, by state.", {{"state", "lost"}}).set(0.5);
  metrics.gauge("troupe_peers", "Peers, by state.", {{"state", "in"}}).set(3);
  auto& seconds = metrics.histogram("troupe_step_seconds", "Time of a step.", {0.1, 1, 10});
  for (double x : {0.05, 0.1, 0.25, 100.0}) seconds.observe(x);
  EXPECT_EQ(metrics.text(), R"(# HELP troupe_peers Peers, by state.
# TYPE troupe_peers gauge
troupe_peers{state="in"} 3
troupe_peers{state="lost"} 0.5
# HELP troupe_step_seconds Time of a step.
# TYPE troupe_step_seconds histogram
troupe_step_seconds_bucket{le="0.1"} 2
troupe_step_seconds_bucket{le="1"} 3
troupe_step_seconds_bucket{le="10"} 3
troupe_step_seconds_bucket{le="+Inf"} 4
troupe_step_seconds_sum 100.4
troupe_step_seconds_count 4
# HELP troupe_steps_total Steps done.
# TYPE troupe_steps_total counter
troupe_steps_total 42
)");
}

TEST(Metrics, label_values_and_help_may_be_anything) {
  Metrics metrics;
  metrics.counter("c", "a \"b\"\n\\", {{"l", "a \"b\"\n\\"}, {"m", ""}}).add();
  EXPECT_EQ(metrics.text(),
            "# HELP c a \"b\"\\n\\\\\n# TYPE c counter\nc{l=\"a \\\"b\\\"\\n\\\\\",m=\"\"} 1\n");
}

TEST(Metrics, labels_of_a_histogram_come_before_its_bound) {
  Metrics metrics;
  metrics.histogram("h", "", {1}, {{"l", "x"}}).observe(2);
  EXPECT_THAT(metrics.text(), testing::HasSubstr("h_bucket{l=\"x\",le=\"1\"} 0\n"));
}

TEST(Metrics, the_same_name_and_labels_are_the_same_metric) {
  Metrics metrics;
  EXPECT_EQ(&metrics.counter("c", "", {{"a", "1"}}), &metrics.counter("c", "", {{"a", "1"}}));
  EXPECT_NE(&metrics.counter("c", "", {{"a", "1"}}), &metrics.counter("c", "", {{"a", "2"}}));
}

TEST(Metrics, histograms_of_one_name_share_their_bounds) {
  Metrics metrics;
  metrics.histogram("h", "", {1, 2}, {{"a", "1"}});
  EXPECT_THAT(metrics.histogram("h", "", {7}, {{"a", "2"}}).bounds(), ElementsAre(1, 2));
}

TEST(Metrics, two_of_them_do_not_know_each_other) {
  Metrics a, b;
  a.counter("c", "").add();
  EXPECT_EQ(b.text(), "");
}

TEST(Metrics, numbers_that_are_none_are_written_as_prometheus_does) {
  Metrics metrics;
  metrics.gauge("a", "").set(std::numeric_limits<double>::infinity());
  metrics.gauge("b", "").set(-std::numeric_limits<double>::infinity());
  metrics.gauge("c", "").set(std::numeric_limits<double>::quiet_NaN());
  const auto text = metrics.text();
  for (const char* line : {"\na +Inf\n", "\nb -Inf\n", "\nc NaN\n"})
    EXPECT_THAT(text, testing::HasSubstr(line));
}

TEST(Metrics, nothing_is_lost_between_threads) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        metrics.counter("c", "").add();
        metrics.gauge("g", "").add(1);
        metrics.histogram("h", "", {10}).observe(1);
        if (i % 100 == 0) (void)metrics.text();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(metrics.counter("c", "").value(), 4000u);
  EXPECT_EQ(metrics.gauge("g", "").value(), 4000);
  EXPECT_THAT(metrics.histogram("h", "", {10}).counts(), ElementsAre(4000, 0));
}

TEST(MetricsDeathTest, mistakes_in_names_are_bugs) {
  Metrics metrics;
  metrics.counter("c", "");
  EXPECT_DEATH(metrics.gauge("c", ""), "metric 'c' is of another kind already");
  EXPECT_DEATH(metrics.gauge("c", "", {{"a", "1"}}), "metric 'c' is of another kind already");
  EXPECT_DEATH(metrics.counter("1c", ""), "'1c' is no metric name");
  EXPECT_DEATH(metrics.counter("d", "", {{"a b", ""}}), "cannot have a label named 'a b'");
  EXPECT_DEATH(metrics.histogram("h", "", {2, 1}), "a histogram's bounds must ascend");
}

TEST(Metrics, exponential_bounds_multiply) {
  EXPECT_THAT(exponential_bounds(1, 4, 4), ElementsAre(1, 4, 16, 64));
}

}  // namespace
}  // namespace troupe
