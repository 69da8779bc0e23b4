#include "actors/collective/sum.hpp"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::collective {
namespace {

class SumTest : public ::testing::Test {
protected:
  std::vector<float> draw(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_) * std::exp2(normal(random_) * 8);
    return values;
  }
  static void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    if (!a.empty()) {
      EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
    }
  }
  std::mt19937 random_{7};
};

TEST_F(SumTest, EachLoopAddsInTheOrderItsNameSays) {
  for (const std::size_t count : {0u, 1u, 3u, 8u, 15u, 16u, 17u, 1000u, 1024u}) {
    const auto a = draw(count), b = draw(count), c = draw(count), d = draw(count);
    std::vector<float> two(count), left(count), right(count), four(count), out(count);
    for (std::size_t i = 0; i < count; ++i) {
      volatile float ab = a[i] + b[i];
      volatile float bc = b[i] + c[i];
      volatile float cd = c[i] + d[i];
      two[i] = ab;
      left[i] = ab + c[i];
      right[i] = a[i] + bc;
      four[i] = ab + cd;
    }
    add2(out.data(), a.data(), b.data(), count);
    expect_same_bits(out, two);
    add3_left(out.data(), a.data(), b.data(), c.data(), count);
    expect_same_bits(out, left);
    add3_right(out.data(), a.data(), b.data(), c.data(), count);
    expect_same_bits(out, right);
    add4(out.data(), a.data(), b.data(), c.data(), d.data(), count);
    expect_same_bits(out, four);
  }
}

TEST_F(SumTest, TheResultMayReplaceAnInput) {
  const auto a = draw(1001), b = draw(1001);
  std::vector<float> expected(a.size());
  add2(expected.data(), a.data(), b.data(), a.size());
  auto in_place = b;
  add2(in_place.data(), a.data(), in_place.data(), a.size());
  expect_same_bits(in_place, expected);
}

}  // namespace
}  // namespace troupe::collective
