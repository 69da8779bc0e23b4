#include "kernels/short_floats.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace troupe::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Kind {
  const char* name;
  std::uint16_t (*bits)(float);
  float (*value)(std::uint16_t);
  std::uint16_t infinity;
};
const Kind kKinds[] = {{"bf16", bf16_bits, bf16_value, 0x7f80},
                       {"f16", f16_bits, f16_value, 0x7c00}};

TEST(ShortFloats, widen_and_come_back_as_they_were) {
  for (const Kind& kind : kKinds)
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      const float value = kind.value(half);
      const bool nan = (half & 0x7fffu) > kind.infinity;
      ASSERT_EQ(std::isnan(value), nan) << kind.name << " " << bits;
      if (nan)
        ASSERT_TRUE(std::isnan(kind.value(kind.bits(value)))) << kind.name << " " << bits;
      else
        ASSERT_EQ(kind.bits(value), half) << kind.name << " " << bits;
    }
}

TEST(ShortFloats, round_to_the_nearest_and_from_the_middle_to_the_even) {
  for (const Kind& kind : kKinds)
    for (unsigned bits = 0; bits + 1u < kind.infinity; ++bits) {
      const auto low = static_cast<std::uint16_t>(bits);
      const auto high = static_cast<std::uint16_t>(bits + 1);
      // Exact: a float has more bits than the sum needs.
      const float middle = kind.value(low) + (kind.value(high) - kind.value(low)) / 2;
      const std::uint16_t even = bits % 2 == 0 ? low : high;
      ASSERT_EQ(kind.bits(middle), even) << kind.name << " " << bits;
      ASSERT_EQ(kind.bits(-middle), even | 0x8000u) << kind.name << " " << bits;
      ASSERT_EQ(kind.bits(std::nextafter(middle, 0.0f)), low) << kind.name << " " << bits;
      ASSERT_EQ(kind.bits(std::nextafter(middle, kInfinity)), high) << kind.name << " " << bits;
    }
}

TEST(ShortFloats, too_large_are_infinite) {
  EXPECT_EQ(f16_value(f16_bits(65519.0f)), 65504.0f);
  EXPECT_EQ(f16_bits(65520.0f), 0x7c00);
  EXPECT_EQ(f16_bits(-1e30f), 0xfc00);
  EXPECT_EQ(bf16_bits(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(bf16_value(0x4049), 3.140625f);
}

}  // namespace
}  // namespace troupe::kernels
