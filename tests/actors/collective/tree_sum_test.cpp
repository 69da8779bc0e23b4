#include "actors/collective/tree_sum.hpp"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "tests/actors/collective/simulation.hpp"

namespace troupe::collective {
namespace {

/// Cuts the tree at random places into parts.
void cut(RankRange range, std::mt19937_64& random, std::vector<RankRange>& parts) {
  if (range.size() == 1 || random() % 3 == 0) {
    parts.push_back(range);
    return;
  }
  const auto mid = Tree::split(range);
  cut({range.begin, mid}, random, parts);
  cut({mid, range.end}, random, parts);
}

TEST(TreeSumTest, AnyCutOfTheTreeGivesTheBitsOfTheNaiveSum) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    const auto ranks = static_cast<std::uint32_t>(1 + random() % 33);
    const std::size_t count = 1 + random() % 3000;
    std::vector<std::vector<float>> values;
    for (std::uint32_t r = 0; r < ranks; ++r) values.push_back(draw_values(random, count));

    std::vector<RankRange> parts;
    cut({0, ranks}, random, parts);
    std::vector<std::vector<float>> sums;
    std::vector<const float*> operands;
    for (const RankRange part : parts) sums.push_back(naive_sum(part, values));
    for (const auto& sum : sums) operands.push_back(sum.data());

    TreeSum tree_sum({0, ranks}, parts);
    std::vector<float> out(count);
    tree_sum.run(out.data(), operands, count);
    const auto expected = naive_sum({0, ranks}, values);
    ASSERT_EQ(std::memcmp(out.data(), expected.data(), count * sizeof(float)), 0)
        << "ranks " << ranks << " parts " << parts.size();
  }
}

TEST(TreeSumTest, TheResultMayReplaceAnOperand) {
  std::mt19937_64 random(12);
  std::vector<std::vector<float>> values;
  std::vector<RankRange> leaves;
  for (std::uint32_t r = 0; r < 7; ++r) {
    values.push_back(draw_values(random, 2500));
    leaves.push_back({r, r + 1});
  }
  const auto expected = naive_sum({0, 7}, values);
  std::vector<const float*> operands;
  for (const auto& value : values) operands.push_back(value.data());
  TreeSum({0, 7}, leaves).run(values[3].data(), operands, 2500);
  EXPECT_EQ(std::memcmp(values[3].data(), expected.data(), 2500 * sizeof(float)), 0);
}

TEST(TreeSumTest, DoublesFollowTheSameTree) {
  std::vector<RankRange> leaves;
  std::vector<double> rows;
  for (std::uint32_t r = 0; r < 5; ++r) {
    leaves.push_back({r, r + 1});
    rows.push_back(0.1 * (r + 1));
    rows.push_back(r);
  }
  const auto sum = TreeSum({0, 5}, leaves).run(rows, 2);
  ASSERT_EQ(sum.size(), 2u);
  EXPECT_EQ(sum[0], ((rows[0] + rows[2]) + (rows[4] + rows[6])) + rows[8]);
  EXPECT_EQ(sum[1], 10.0);
}

}  // namespace
}  // namespace troupe::collective
