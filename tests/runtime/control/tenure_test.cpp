#include "runtime/control/internal/tenure.hpp"

#include "runtime/control/internal/wait.hpp"
#include "tests/runtime/control/store_fixture.hpp"

namespace troupe::control {
namespace {

TEST(Tenure, lasts_until_it_ends) {
  LostRecorder lost;
  Tenure tenure;
  EXPECT_EQ(tenure.check().code(), Code::failed_precondition);
  tenure.begin(TimePoint::max(), lost.callback());
  EXPECT_TRUE(tenure.check().ok());
  tenure.end();
  EXPECT_EQ(tenure.check().code(), Code::failed_precondition);
  tenure.lose({Code::unavailable, "after it resigned"});
  EXPECT_EQ(lost.count(), 0u);
}

TEST(Tenure, is_lost_when_its_time_has_come_and_not_revived) {
  LostRecorder lost;
  Tenure tenure;
  tenure.begin(deadline_after(milliseconds(20)), lost.callback());
  const auto why = lost.wait();
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->code, Code::unavailable);
  tenure.extend(TimePoint::max());
  EXPECT_EQ(tenure.check().code(), Code::failed_precondition);
}

TEST(Tenure, is_lost_once) {
  LostRecorder lost;
  {
    Tenure tenure;
    tenure.begin(TimePoint::max(), lost.callback());
    tenure.lose({Code::unavailable, "first"});
    tenure.lose({Code::unavailable, "second"});
    ASSERT_TRUE(lost.wait().has_value());
    EXPECT_NE(tenure.check().error().message.find("first"), std::string::npos);
  }
  EXPECT_EQ(lost.count(), 1u);
  EXPECT_EQ(lost.wait()->message, "first");
}

TEST(Tenure, lasts_as_long_as_it_is_extended) {
  LostRecorder lost;
  Tenure tenure;
  tenure.begin(deadline_after(seconds(20)), lost.callback());
  const TimePoint later = deadline_after(seconds(40));
  tenure.extend(later);
  tenure.extend(deadline_after(seconds(1)));  // an answer that came late
  EXPECT_EQ(tenure.until(), later);
}

}  // namespace
}  // namespace troupe::control
