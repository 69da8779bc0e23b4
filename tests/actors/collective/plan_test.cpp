#include "actors/collective/plan.hpp"

#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlanSpec spec_of(std::vector<std::uint32_t> node_of_rank, std::uint32_t nodes,
                 std::vector<std::uint64_t> buckets, Tuning tuning = {}) {
  return {std::move(node_of_rank), nodes, std::move(buckets), 0, tuning};
}

std::string error_of(PlanSpec spec) {
  const auto plan = ReducePlan::make(std::move(spec));
  return plan.ok() ? "" : plan.error().message;
}

TEST(ReducePlanTest, SlicesTileEachBucketAndBeginAtMultiplesOfSixteen) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const auto nodes = static_cast<std::uint32_t>(1 + random() % 9);
    std::vector<std::uint32_t> placement(1 + random() % 16);
    for (auto& node : placement) node = static_cast<std::uint32_t>(random() % nodes);
    std::vector<std::uint64_t> buckets(1 + random() % 4);
    for (auto& elements : buckets) elements = 1 + random() % (1u << (random() % 20));
    const Tuning tuning{4096u << (random() % 6), random() % 65536, random() % 65536,
                        random() % 2 == 0};
    const auto plan = *ReducePlan::make(spec_of(placement, nodes, buckets, tuning));
    for (std::uint32_t b = 0; b < plan->buckets(); ++b) {
      std::uint64_t at = 0;
      for (auto i = plan->first_slice(b); i < plan->end_slice(b); ++i) {
        const Slice& slice = plan->slices()[i];
        EXPECT_EQ(slice.bucket, b);
        EXPECT_EQ(slice.offset, at);
        EXPECT_EQ(slice.offset % 16, 0u);
        EXPECT_GT(slice.elements, 0u);
        EXPECT_LE(slice.elements * sizeof(float), tuning.chunk_bytes + 64);
        if (slice.owner != Slice::kAllNodes) {
          EXPECT_FALSE(plan->ranks_of(slice.owner).empty()) << "an owner without a rank";
        }
        at += slice.elements;
      }
      EXPECT_EQ(at, buckets[b]);
    }
  }
}

TEST(ReducePlanTest, LargeBucketsAreSharedEquallyAmongNodesWithRanks) {
  const auto plan = *ReducePlan::make(spec_of({0, 0, 2, 3}, 4, {3 << 20}, {1 << 20, 0, 0, false}));
  EXPECT_THAT(plan->contributors(), ElementsAre(0, 2, 3));
  std::map<std::uint32_t, std::uint64_t> owned;
  for (const Slice& slice : plan->slices()) owned[slice.owner] += slice.elements;
  EXPECT_EQ(owned,
            (std::map<std::uint32_t, std::uint64_t>{{0, 1 << 20}, {2, 1 << 20}, {3, 1 << 20}}));
}

TEST(ReducePlanTest, SmallBucketsHaveOneOwnerInTurn) {
  const auto plan =
      *ReducePlan::make(spec_of({0, 1, 2}, 3, {100, 100, 100, 100}, {1 << 20, 32 << 10, 0, false}));
  std::vector<std::uint32_t> owners;
  for (const Slice& slice : plan->slices()) owners.push_back(slice.owner);
  EXPECT_THAT(owners, ElementsAre(0, 1, 2, 0));
}

TEST(ReducePlanTest, TinyBucketsHaveNoOwner) {
  const auto plan = *ReducePlan::make(spec_of({0, 1, 2}, 3, {100}));
  EXPECT_EQ(plan->slices()[0].owner, Slice::kAllNodes);
}

TEST(ReducePlanTest, AmongManyNodesSmallBucketsHaveSeveralOwnersWithSlicesOfSomeSize) {
  constexpr std::uint64_t kElements = 61706;
  for (const std::uint32_t nodes : {100u, 1000u}) {
    std::vector<std::uint32_t> placement(nodes);
    for (std::uint32_t rank = 0; rank < nodes; ++rank) placement[rank] = rank;
    const auto plan = *ReducePlan::make(spec_of(placement, nodes, {kElements, kElements, 100}));
    std::map<std::uint32_t, std::size_t> owned;
    for (auto i = plan->first_slice(0); i < plan->end_slice(1); ++i) {
      const Slice& slice = plan->slices()[i];
      ++owned[slice.owner];
      EXPECT_GE(i + 1 == plan->end_slice(slice.bucket) ? 4096 : slice.elements * 4, 4096u);
    }
    EXPECT_EQ(plan->end_slice(0), 60u);
    EXPECT_EQ(owned.size(), std::min(nodes, 120u));  // the second bucket's are others, if there are
    EXPECT_NE(plan->slices().back().owner, Slice::kAllNodes) << "as many messages as pairs";
  }
}

TEST(ReducePlanTest, ExtrasGoFromAllToAllAmongFewNodesOnly) {
  const auto few = *ReducePlan::make(spec_of({0, 1, 2}, 3, {100}));
  EXPECT_EQ(few->extras_owner(), Slice::kAllNodes);
  Tuning tuning;
  tuning.direct_nodes = 2;
  const auto many = *ReducePlan::make(spec_of({0, 1, 1}, 3, {100}, tuning));
  EXPECT_EQ(many->extras_owner(), 1u) << "the last that has a rank";
  EXPECT_EQ(many->extras_senders(), 1u) << "without values only who has no rank";
}

TEST(ReducePlanTest, ANodeWithAllRanksOwnsEverything) {
  const auto plan = *ReducePlan::make(spec_of({1, 1, 1}, 2, {100, 1 << 20}));
  for (const Slice& slice : plan->slices()) EXPECT_EQ(slice.owner, 1u);
}

TEST(ReducePlanTest, PartsStandInTreeOrderWhateverThePlacement) {
  const auto plan = *ReducePlan::make(spec_of({1, 0, 0, 0, 1, 1}, 2, {10}));
  std::vector<RankRange> ranges;
  std::vector<std::uint32_t> nodes;
  for (const Part& part : plan->parts()) {
    ranges.push_back(part.range);
    nodes.push_back(part.node);
  }
  EXPECT_THAT(ranges,
              ElementsAre(RankRange{0, 1}, RankRange{1, 2}, RankRange{2, 4}, RankRange{4, 6}));
  EXPECT_THAT(nodes, ElementsAre(1, 0, 0, 1));
}

TEST(ReducePlanTest, PlansThatDifferHaveDifferentFingerprints) {
  const auto base = spec_of({0, 1}, 2, {100, 200});
  const auto print = [](PlanSpec spec) {
    return (*ReducePlan::make(std::move(spec)))->fingerprint();
  };
  EXPECT_EQ(print(base), print(base));
  auto other = base;
  other.node_of_rank = {1, 0};
  EXPECT_NE(print(base), print(other));
  other = base;
  other.bucket_elements = {200, 100};
  EXPECT_NE(print(base), print(other));
  other = base;
  other.tuning.chunk_bytes *= 2;
  EXPECT_NE(print(base), print(other));
  other = base;
  other.extras = 1;
  EXPECT_NE(print(base), print(other));
}

TEST(ReducePlanTest, WrongValuesAreNamed) {
  EXPECT_THAT(error_of(spec_of({}, 1, {1})), HasSubstr("0 ranks"));
  EXPECT_THAT(error_of(spec_of({0}, 0, {1})), HasSubstr("0 nodes"));
  EXPECT_THAT(error_of(spec_of({0, 5}, 2, {1})), HasSubstr("rank 1 is placed on node 5"));
  EXPECT_THAT(error_of(spec_of({0}, 1, {4, 0})), HasSubstr("bucket 1 has 0 elements"));
  EXPECT_THAT(error_of(spec_of({0}, 1, {~std::uint64_t{0}, 2})), HasSubstr("bucket 0"));
  EXPECT_THAT(error_of(spec_of({0}, 1, {})), HasSubstr("no bucket"));
  EXPECT_THAT(error_of(spec_of({0}, 1, {1}, {16, 0, 0, false})), HasSubstr("chunks of 16 bytes"));
  EXPECT_THAT(error_of(spec_of({0}, 1, {std::uint64_t{1} << 38}, {4096, 0, 0, false})),
              HasSubstr("larger chunks"));
}

}  // namespace
}  // namespace troupe::collective
