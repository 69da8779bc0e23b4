#include "runtime/transport/internal/leadership.hpp"

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

TEST(Leadership, StaysIfTheRunEndsInTime) {
  Leadership lead;
  const auto term = lead.begin_run();
  EXPECT_TRUE(lead.end_run(term));
  EXPECT_EQ(lead.leader(), 0);
  EXPECT_FALSE(lead.take_over(term));
}

TEST(Leadership, GoesToTheOtherThreadDuringALongRun) {
  Leadership lead;
  const auto term = lead.begin_run();
  ASSERT_TRUE(lead.take_over(lead.observe()));
  EXPECT_EQ(lead.leader(), 1);
  EXPECT_FALSE(lead.end_run(term));
}

TEST(Leadership, IsNotTakenInALaterRunThanTheOneObserved) {
  Leadership lead;
  const auto observed = lead.begin_run();
  ASSERT_TRUE(lead.end_run(observed));
  const auto next = lead.begin_run();
  EXPECT_FALSE(lead.take_over(observed));
  EXPECT_TRUE(lead.end_run(next));
}

TEST(Leadership, IsNotTakenFromAnIdleLeader) {
  Leadership lead;
  EXPECT_FALSE(lead.take_over(lead.observe()));
}

TEST(Leadership, HasExactlyOneHolderUnderContention) {
  Leadership lead;
  std::atomic<int> holders{0};
  std::atomic<bool> stop{false};
  long plain = 0;  // a race here is what ThreadSanitizer would see
  const auto thread = [&](int index) {
    lead.enroll(index);
    auto seen = lead.observe();
    while (!stop) {
      if (lead.leader() != index) {
        const auto now = lead.observe();
        if (now == seen) lead.take_over(now);
        seen = now;
        continue;
      }
      ASSERT_EQ(holders.fetch_add(1), 0);
      ASSERT_TRUE(lead.is_mine());
      const long rounds = ++plain;
      ASSERT_EQ(holders.fetch_sub(1), 1);
      const auto term = lead.begin_run();
      for (int i = 0; i < rounds % 20; ++i) std::this_thread::yield();
      (void)lead.end_run(term);
      if (rounds >= 1000) stop = true;
    }
  };
  std::thread first(thread, 0), second(thread, 1);
  first.join();
  second.join();
}

}  // namespace
}  // namespace troupe::transport
