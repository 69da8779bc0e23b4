#include "actors/collective/tree.hpp"

#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string shape(RankRange range) {
  if (range.size() == 1) return std::to_string(range.begin);
  const auto mid = Tree::split(range);
  return "(" + shape({range.begin, mid}) + "+" + shape({mid, range.end}) + ")";
}

std::vector<RankRange> cover(std::uint32_t ranks, const std::vector<std::uint32_t>& some) {
  return Tree(ranks).cover(some);
}

TEST(TreeTest, PowersOfTwoAreSplitInExactHalves) {
  EXPECT_EQ(shape(Tree(1).root()), "0");
  EXPECT_EQ(shape(Tree(2).root()), "(0+1)");
  EXPECT_EQ(shape(Tree(8).root()), "(((0+1)+(2+3))+((4+5)+(6+7)))");
}

TEST(TreeTest, OtherCountsHaveFullTreesOnTheLeft) {
  EXPECT_EQ(shape(Tree(3).root()), "((0+1)+2)");
  EXPECT_EQ(shape(Tree(6).root()), "(((0+1)+(2+3))+(4+5))");
  EXPECT_EQ(shape(Tree(7).root()), "(((0+1)+(2+3))+((4+5)+6))");
}

TEST(TreeTest, ItKnowsItsSubTrees) {
  const Tree tree(6);
  EXPECT_TRUE(tree.contains({0, 6}));
  EXPECT_TRUE(tree.contains({0, 4}));
  EXPECT_TRUE(tree.contains({2, 4}));
  EXPECT_TRUE(tree.contains({5, 6}));
  EXPECT_FALSE(tree.contains({1, 3}));
  EXPECT_FALSE(tree.contains({0, 3}));
  EXPECT_FALSE(tree.contains({4, 8}));
  EXPECT_FALSE(tree.contains({3, 3}));
}

TEST(TreeTest, ACoverConsistsOfTheLargestSubTreesThatAreWhollyThere) {
  EXPECT_THAT(cover(8, {0, 1, 2, 3}), ElementsAre(RankRange{0, 4}));
  EXPECT_THAT(cover(8, {0, 1, 2}), ElementsAre(RankRange{0, 2}, RankRange{2, 3}));
  EXPECT_THAT(cover(8, {3, 4, 5}), ElementsAre(RankRange{3, 4}, RankRange{4, 6}));
  EXPECT_THAT(cover(8, {1, 2}), ElementsAre(RankRange{1, 2}, RankRange{2, 3}));
  EXPECT_THAT(cover(6, {4, 5}), ElementsAre(RankRange{4, 6}));
  EXPECT_THAT(cover(8, {}), IsEmpty());
}

TEST(TreeTest, TheCoverOfAllRanksIsTheRoot) {
  for (std::uint32_t ranks = 1; ranks <= 40; ++ranks) {
    std::vector<std::uint32_t> all(ranks);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_THAT(cover(ranks, all), ElementsAre(RankRange{0, ranks}));
  }
}

}  // namespace
}  // namespace troupe::collective
