#include "actors/job/straggler_watch.hpp"

#include <gtest/gtest.h>

namespace troupe::train {
namespace {

/// Everybody says once how long it takes; the verdict on the last.
std::optional<StragglerWatch::Verdict> round(StragglerWatch& watch, double last) {
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(watch.pace(i, 0.010 + 0.001 * double(i)));
  return watch.pace(3, last);
}

TEST(StragglerWatch, reports_who_is_slow_for_three_times_once) {
  StragglerWatch watch({});
  watch.begin(4);
  EXPECT_FALSE(round(watch, 0.040));
  EXPECT_FALSE(round(watch, 0.040));
  const auto verdict = round(watch, 0.040);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->sentence, "its ranks take 40 ms a step, those of the other nodes 11 ms");
  EXPECT_FALSE(verdict->drop);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(round(watch, 0.040));
}

TEST(StragglerWatch, reports_again_who_has_caught_up_meanwhile) {
  StragglerWatch watch({});
  watch.begin(4);
  int reports = 0;
  for (const double seconds : {0.04, 0.04, 0.04, 0.01, 0.04, 0.04, 0.04, 0.04})
    reports += round(watch, seconds).has_value();
  EXPECT_EQ(reports, 2);
}

TEST(StragglerWatch, says_nothing_of_one_who_is_only_somewhat_slower) {
  StragglerWatch watch({});
  watch.begin(4);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(round(watch, 0.019));
}

TEST(StragglerWatch, has_one_dropped_beyond_the_limit_for_that) {
  StragglerWatch watch({.report_factor = 2, .drop_factor = 5});
  watch.begin(4);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(round(watch, 0.040));
  EXPECT_FALSE(round(watch, 0.040)->drop);
  EXPECT_TRUE(round(watch, 0.080)->drop);
}

TEST(StragglerWatch, knows_no_straggler_among_one_or_among_those_it_has_not_heard_of) {
  StragglerWatch watch({});
  watch.begin(1);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(watch.pace(0, 1.0));
  watch.begin(2);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(watch.pace(1, 1.0));
  EXPECT_FALSE(watch.pace(7, 1.0));
  EXPECT_FALSE(watch.pace(0, 0.0));
}

TEST(StragglerWatch, says_nothing_where_steps_take_no_time_to_speak_of) {
  StragglerWatch watch({});
  watch.begin(2);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(watch.pace(0, 0.0001));
    EXPECT_FALSE(watch.pace(1, 0.0009));
  }
}

TEST(StragglerWatch, can_be_switched_off) {
  StragglerWatch watch({.report_factor = 0, .drop_factor = 0});
  watch.begin(4);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(round(watch, 10.0));
}

}  // namespace
}  // namespace troupe::train
