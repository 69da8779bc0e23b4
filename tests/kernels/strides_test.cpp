#include "kernels/strides.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::kernels {
namespace {

TEST(Strides, of_a_shape_put_the_last_dimension_or_the_channels_side_by_side) {
  const Shape images{2, 3, 4, 5};
  EXPECT_EQ(Strides::row_major(images), (Strides{60, 20, 5, 1}));
  EXPECT_EQ(Strides::of(images, MemoryFormat::channels_last).value(), (Strides{60, 1, 15, 3}));
  EXPECT_EQ(Strides::of({3, 4, 5}, MemoryFormat::channels_last).code(), Code::shape_mismatch);
  EXPECT_EQ(to_string(Strides{60, 20, 5, 1}), "[60, 20, 5, 1]");
  EXPECT_EQ(Strides::row_major({}).rank(), 0u);
}

TEST(Strides, from_outside_are_checked) {
  const auto code_of = [](std::vector<std::int64_t> x) { return Strides::checked(x).code(); };
  EXPECT_EQ(code_of({0, 3}), Code::ok);
  EXPECT_EQ(code_of({1, -1}), Code::invalid_argument);
  EXPECT_EQ(code_of({1, 1, 1, 1, 1, 1, 1}), Code::invalid_argument);
}

TEST(Strides, reach_from_the_first_element_to_after_the_last) {
  EXPECT_EQ((Strides{10, 2}.extent({2, 3}).value()), 15u);
  EXPECT_EQ((Strides{0, 0}.extent({2, 3}).value()), 1u);
  EXPECT_EQ((Strides{10, 2}.extent({2, 0}).value()), 0u);
  EXPECT_EQ((Strides{10}.extent({2, 3}).code()), Code::invalid_argument);
  constexpr auto kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((Strides{kHuge, kHuge}.extent({1, 1}).value()), 1u);
  EXPECT_EQ((Strides{kHuge, 1}.extent({2, 1}).code()), Code::invalid_argument);
  EXPECT_EQ((Strides{1, std::int64_t{1} << 47}.extent({2, 3}).code()), Code::invalid_argument);
}

TEST(Strides, of_dimensions_of_size_one_do_not_matter) {
  EXPECT_TRUE((Strides{7, 3, 1}.same_for({1, 2, 3}, {99, 3, 1})));
  EXPECT_FALSE((Strides{7, 3, 1}.same_for({2, 2, 3}, {99, 3, 1})));
  EXPECT_TRUE((Strides{7, 3}.same_for({0, 2}, {1, 1}))) << "nor those of no elements";
}

}  // namespace
}  // namespace troupe::kernels
