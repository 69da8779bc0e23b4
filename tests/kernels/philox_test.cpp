#include "kernels/philox.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::kernels {
namespace {

using Block = Philox::Block;

// The known answers that the paper's authors publish with their code (Random123, kat_vectors).
TEST(Philox, gives_its_authors_known_answers) {
  EXPECT_EQ(Philox::block({0, 0}, {0, 0, 0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      Philox::block({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
      (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      Philox::block({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
      (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, without_a_stream_runs_through_the_blocks_of_its_seed) {
  Philox random(0);
  for (std::uint32_t expected : {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u})
    EXPECT_EQ(random.next(), expected);
  EXPECT_EQ(random.next(), Philox::block({0, 0}, {1, 0, 0, 0})[0]);
}

TEST(Philox, of_one_name_repeats_and_of_another_does_not) {
  Philox first(1, {2, 3}), same(1, {2, 3}), seed(2, {2, 3}), part(1, {2, 4}), order(1, {3, 2}),
      shorter(1, {2});
  const std::uint64_t value = first.next64();
  EXPECT_EQ(value, same.next64());
  for (Philox* other : {&seed, &part, &order, &shorter}) EXPECT_NE(value, other->next64());
}

TEST(Philox, seeks_to_any_block) {
  Philox straight(5), jumping(5);
  for (int i = 0; i < 4 * 1000; ++i) straight.next();
  jumping.next();
  jumping.seek(1000);
  EXPECT_EQ(straight.next(), jumping.next());
}

TEST(Philox, draws_uniform_numbers_below_one) {
  Philox random(6);
  double sum = 0.0, squares = 0.0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const float value = random.uniform();
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  // Five deviations of the means.
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 0.2887 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 5 * 0.2981 / std::sqrt(kDraws));
}

TEST(Philox, draws_normal_numbers) {
  Philox random(7);
  double sum = 0.0, squares = 0.0;
  int beyond = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const auto value = static_cast<double>(random.normal());
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
    beyond += std::abs(value) > 1.959964;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(static_cast<double>(beyond) / kDraws, 0.05, 5 * std::sqrt(0.05 * 0.95 / kDraws));
}

TEST(Philox, draws_below_a_bound_without_favour) {
  Philox random(8);
  std::vector<int> counts(6);
  constexpr int kDraws = 60'000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(6));
  for (int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Permutation, holds_each_number_once) {
  auto order = permutation(1000, 1, 0).value();
  std::ranges::sort(order);
  std::vector<std::uint32_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(order, expected);
}

TEST(Permutation, is_a_function_of_seed_and_epoch_alone) {
  const auto order = permutation(100, 1, 2).value();
  EXPECT_EQ(order, permutation(100, 1, 2).value());
  EXPECT_NE(order, permutation(100, 1, 3).value());
  EXPECT_NE(order, permutation(100, 2, 2).value());
}

// Jobs are resumed by later versions of this program: these must never change.
TEST(Permutation, is_the_same_for_ever) {
  EXPECT_EQ(permutation(8, 42, 3).value(), (std::vector<std::uint32_t>{3, 7, 2, 4, 5, 1, 6, 0}));
}

TEST(Permutation, of_few_comes_in_every_order) {
  std::set<std::vector<std::uint32_t>> seen;
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) seen.insert(permutation(4, 1, epoch).value());
  EXPECT_EQ(seen.size(), 24u);
}

TEST(Permutation, of_nothing_is_empty_and_of_too_much_an_error) {
  EXPECT_TRUE(permutation(0, 1, 1).value().empty());
  EXPECT_EQ(permutation(std::uint64_t{1} << 32, 1, 1).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace troupe::kernels
