#include "runtime/base/status.hpp"

#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace troupe {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return Error{Code::invalid_argument, "odd"};
  return x / 2;
}

Result<int> quarter(int x) {
  TROUPE_ASSIGN(int h, half(x));
  TROUPE_ASSIGN(int q, half(h));
  return q;
}

Status divisible_by_four(int x) {
  TROUPE_TRY(quarter(x));
  return {};
}

TEST(Status, is_ok_by_default) {
  EXPECT_TRUE(Status{}.ok());
}

TEST(Status, an_error_passes_through_try_and_assign) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).code(), Code::invalid_argument);
  EXPECT_TRUE(divisible_by_four(8).ok());
  EXPECT_EQ(divisible_by_four(2).error().message, "odd");
}

TEST(Status, an_error_prints_its_sentence_and_its_code) {
  EXPECT_EQ(to_string(Error{Code::address_in_use, "port 7 is taken"}),
            "port 7 is taken (address_in_use)");
}

TEST(Status, every_code_has_a_name_and_a_strange_number_is_unknown) {
  for (int code = 0; code <= 18; ++code)
    EXPECT_NE(to_string(static_cast<Code>(code)), "unknown") << code;
  EXPECT_EQ(to_string(static_cast<Code>(4711)), "unknown");
}

TEST(Result, what_a_call_returned_lives_as_long_as_what_is_bound_to_it) {
  const auto call = []() -> Result<std::vector<int>> { return std::vector<int>{1, 2, 3}; };
  static_assert(!std::is_reference_v<decltype(*call())>);
  static_assert(!std::is_reference_v<decltype(call().value())>);
  int sum = 0;
  for (const int x : *call()) sum += x;
  EXPECT_EQ(sum, 6);
}

TEST(StatusDeathTest, the_value_of_an_error_aborts_with_its_sentence) {
  EXPECT_DEATH(quarter(6).value(), "odd");
}

}  // namespace
}  // namespace troupe
