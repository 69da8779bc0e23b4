#include "kernels/non_finite.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::kernels {
namespace {

using Limits = std::numeric_limits<float>;

/// Numbers that look the most like what is not one.
std::vector<float> finite(std::size_t count) {
  const float extremes[] = {0.0f,
                            -0.0f,
                            Limits::max(),
                            Limits::lowest(),
                            Limits::min(),
                            Limits::denorm_min(),
                            -Limits::denorm_min(),
                            1.0f};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = extremes[i % std::size(extremes)];
  return values;
}

constexpr std::size_t kLengths[] = {1, 2, 7, 8, 9, 31, 33, 63, 64, 65, 257};
const float kBad[] = {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::signaling_NaN(),
                      Limits::infinity(), -Limits::infinity()};

TEST(NonFinite, nothing_is_found_among_the_greatest_the_least_and_denormals) {
  EXPECT_EQ(find_non_finite({}), 0u);
  for (const auto length : kLengths) EXPECT_EQ(find_non_finite(finite(length)), length);
  EXPECT_EQ(find_non_finite(finite(100'003)), 100'003u);
}

TEST(NonFinite, every_nan_and_infinity_is_found_at_every_place_of_any_length) {
  for (const auto length : kLengths)
    for (const float bad : kBad)
      for (std::size_t at = 0; at < length; ++at) {
        auto values = finite(length);
        values[at] = bad;
        ASSERT_EQ(find_non_finite(values), at) << bad << " of " << length;
      }
}

TEST(NonFinite, the_first_is_found_wherever_the_run_begins) {
  auto values = finite(20'000);
  for (const std::size_t at : {0, 4095, 4096, 4097, 8191, 12'345, 19'999}) {
    values[at] = Limits::infinity();
    for (const std::size_t begin : {0, 1, 2, 3})
      ASSERT_EQ(find_non_finite(std::span(values).subspan(begin)),
                at < begin ? values.size() - begin : at - begin);
    values[19'999] = Limits::quiet_NaN();
    ASSERT_EQ(find_non_finite(values), at);
    values = finite(values.size());
  }
}

}  // namespace
}  // namespace troupe::kernels
