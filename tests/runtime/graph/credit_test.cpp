#include "runtime/graph/credit.hpp"

#include <cstdint>
#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace troupe::graph {
namespace {

TEST(CreditWindow, has_credit_up_to_its_capacity) {
  CreditWindow window(3);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(window.take(), i);
  EXPECT_EQ(window.available(), 0u);
  EXPECT_EQ(window.in_flight(), 3u);
  EXPECT_TRUE(window.give_back(2).ok());
  EXPECT_EQ(window.available(), 2u);
  EXPECT_EQ(window.take(), 3u);
}

TEST(CreditWindow, refuses_credit_for_what_was_never_sent) {
  CreditWindow window(3);
  (void)window.take();
  const auto status = window.give_back(2);
  EXPECT_EQ(status.code(), Code::protocol_error);
  EXPECT_EQ(status.error().message,
            "the consumer returned 2 credits while 1 values were in flight");
  EXPECT_EQ(window.in_flight(), 1u);
}

TEST(CreditWindowDeathTest, sending_without_credit_is_a_bug) {
  EXPECT_DEATH(
      {
        CreditWindow window(1);
        (void)window.take();
        (void)window.take();
      },
      "sending without credit");
}

TEST(CreditReturn, returns_credit_in_batches_of_half_the_capacity) {
  CreditReturn credit(5);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(credit.arrived(i).ok());
  EXPECT_EQ(credit.consumed(), 0u);
  EXPECT_EQ(credit.consumed(), 0u);
  EXPECT_EQ(credit.consumed(), 3u);
  EXPECT_EQ(credit.held(), 2u);
}

TEST(CreditReturn, of_capacity_one_returns_each_credit_at_once) {
  CreditReturn credit(1);
  ASSERT_TRUE(credit.arrived(0).ok());
  EXPECT_EQ(credit.consumed(), 1u);
}

TEST(CreditReturn, refuses_a_value_out_of_order) {
  CreditReturn credit(4);
  ASSERT_TRUE(credit.arrived(0).ok());
  EXPECT_EQ(credit.arrived(2).code(), Code::protocol_error);
  EXPECT_EQ(credit.arrived(0).code(), Code::protocol_error);
  EXPECT_TRUE(credit.arrived(1).ok());
}

TEST(CreditReturn, refuses_a_value_without_credit) {
  CreditReturn credit(2);
  ASSERT_TRUE(credit.arrived(0).ok());
  ASSERT_TRUE(credit.arrived(1).ok());
  const auto status = credit.arrived(2);
  EXPECT_EQ(status.code(), Code::protocol_error);
  EXPECT_EQ(status.error().message, "value 2 arrived without credit: the edge's capacity is 2");
}

/// Producer, consumer, and what is on its way between them, in an order that the seed decides.
TEST(Credit, never_lets_more_than_the_capacity_wait_and_never_stalls) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::uint32_t capacity = 1 + random() % 9;
    CreditWindow window(capacity);
    CreditReturn credit(capacity);
    std::deque<std::uint64_t> values;
    std::deque<std::uint32_t> credits;
    std::uint64_t done = 0;
    for (int step = 0; step < 2000; ++step) {
      switch (random() % 4) {
        case 0:
          if (window.available() > 0) values.push_back(window.take());
          break;
        case 1:
          if (values.empty()) break;
          ASSERT_TRUE(credit.arrived(values.front()).ok());
          values.pop_front();
          break;
        case 2:
          if (credit.held() == 0) break;
          ++done;
          if (const auto count = credit.consumed(); count > 0) credits.push_back(count);
          break;
        case 3:
          if (credits.empty()) break;
          ASSERT_TRUE(window.give_back(credits.front()).ok());
          credits.pop_front();
          break;
      }
      ASSERT_LE(values.size() + credit.held(), capacity);
      // All consumed and all credit arrived: there must be some to go on with.
      if (values.empty() && credit.held() == 0 && credits.empty()) {
        ASSERT_GT(window.available(), 0u);
      }
    }
    EXPECT_GT(done, 100u);
  }
}

}  // namespace
}  // namespace troupe::graph
