#include "kernels/gradient.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/internal/square_sum.hpp"
#include "kernels/layers/linear.hpp"
#include "kernels/philox.hpp"

namespace troupe::kernels {
namespace {

std::vector<float> random_floats(std::size_t count) {
  std::vector<float> values(count);
  Philox random(1);
  for (float& value : values) value = random.normal();
  return values;
}

TEST(SquareSum, is_the_sum_of_squares) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{9}, SquareSum::kBlock,
                                  7 * SquareSum::kBlock + 13}) {
    const auto values = random_floats(count);
    double expected = 0;
    for (const float x : values) expected += static_cast<double>(x) * static_cast<double>(x);
    SquareSum sum;
    sum.add(values);
    EXPECT_NEAR(sum.total(), expected, 1e-13 * expected) << count;
  }
}

TEST(SquareSum, gives_the_same_bits_for_any_pieces) {
  const auto values = random_floats(3 * SquareSum::kBlock + 77);
  SquareSum whole;
  whole.add(values);
  for (const std::size_t piece : {1, 3, 16, 4095, 4097, 9000}) {
    SquareSum pieces;
    for (std::size_t begin = 0; begin < values.size(); begin += piece)
      pieces.add(std::span(values).subspan(begin, std::min(piece, values.size() - begin)));
    EXPECT_EQ(pieces.total(), whole.total()) << piece;
  }
}

TEST(SquareSum, adds_blocks_along_a_tree) {
  // Blocks of 1, 0, 2^-53 and 2^-53: each of the last two alone is lost against 1.
  constexpr auto kBlock = SquareSum::kBlock;
  std::vector<float> values(4 * kBlock);
  values[0] = 1;
  for (const auto i : {2 * kBlock, 2 * kBlock + 8, 3 * kBlock, 3 * kBlock + 8})
    values[i] = 0x1p-27f;
  SquareSum sum;
  sum.add(values);
  EXPECT_EQ(sum.total(), 1 + 0x1p-52);
}

TEST(GradientNorm, is_over_all_that_is_trained) {
  const Model model =
      Model::build("model", {100}, {Linear{.name = "fc", .out_features = 50}}).value();
  std::vector<float> gradient(model.flat_size());
  gradient.front() = 3;
  gradient[5049] = 4;  // the last bias
  const std::span<const float> values = gradient;
  const std::vector<GradientRun> runs = {{0, values.first(10)}, {10, values.subspan(10)}};
  EXPECT_EQ(gradient_norm(model, runs), 5);
}

TEST(ClipFactor, brings_a_larger_norm_to_the_bound_and_leaves_others) {
  EXPECT_NEAR(clip_factor(10, 2), 0.2, 1e-6);
  EXPECT_EQ(clip_factor(1, 2), 1);
  EXPECT_EQ(clip_factor(0, 2), 1);
}

}  // namespace
}  // namespace troupe::kernels
