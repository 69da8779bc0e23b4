#include "actors/data/sampler.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Indices = std::vector<std::uint32_t>;

std::unique_ptr<Sampler> sampler(const SamplerOptions& options) {
  return Sampler::make(options).value();
}

/// What all ranks together get at `step`, in the ranks' order.
Indices batch(const Sampler& from, std::uint64_t step, std::uint32_t ranks) {
  Indices all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Indices part = from.samples(step, rank);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

constexpr SamplerOptions kOptions{.samples = 103, .batch = 20, .ranks = 4, .seed = 7};

TEST(Sampler, an_epoch_shows_no_sample_twice_and_leaves_out_the_rest) {
  const auto from = sampler(kOptions);
  EXPECT_EQ(from->steps_per_epoch(), 5u);
  EXPECT_EQ(from->batch_per_rank(), 5u);
  for (const std::uint64_t epoch : {0, 1}) {
    std::set<std::uint32_t> seen;
    for (std::uint64_t step = 0; step < 5; ++step)
      for (const std::uint32_t index : batch(*from, epoch * 5 + step, 4)) {
        EXPECT_LT(index, 103u);
        EXPECT_TRUE(seen.insert(index).second) << index;
      }
    EXPECT_EQ(seen.size(), 100u);
  }
}

TEST(Sampler, the_order_of_questions_and_what_was_asked_before_do_not_matter) {
  const auto forward = sampler(kOptions);
  const auto backward = sampler(kOptions);
  std::vector<Indices> there, back;
  for (std::uint64_t step = 0; step < 30; ++step) there.push_back(forward->samples(step, 2));
  for (std::uint64_t step = 30; step-- > 0;) back.push_back(backward->samples(step, 2));
  std::reverse(back.begin(), back.end());
  EXPECT_EQ(there, back);
}

TEST(Sampler, each_epoch_and_each_seed_has_its_own_order) {
  const auto from = sampler(kOptions);
  EXPECT_NE(from->samples(0, 0), from->samples(5, 0));
  auto other = kOptions;
  other.seed = 8;
  EXPECT_NE(from->samples(0, 0), sampler(other)->samples(0, 0));
}

TEST(Sampler, the_number_of_ranks_only_cuts_the_batch_in_parts) {
  auto one = kOptions;
  one.ranks = 1;
  EXPECT_EQ(batch(*sampler(kOptions), 7, 4), sampler(one)->samples(7, 0));
}

TEST(Sampler, the_samples_are_those_of_every_version_before) {
  EXPECT_THAT(sampler(kOptions)->samples(0, 0), ElementsAre(37, 41, 15, 59, 48));
  EXPECT_THAT(sampler(kOptions)->samples(9, 3), ElementsAre(75, 79, 78, 76, 52));
}

TEST(Sampler, a_sample_is_as_likely_in_one_place_as_in_another) {
  constexpr std::uint64_t kSamples = 10, kEpochs = 20000;
  const auto from = sampler({.samples = kSamples, .batch = kSamples, .ranks = 1, .seed = 3});
  std::uint64_t at[kSamples][kSamples] = {};
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const Indices order = from->samples(epoch, 0);
    for (std::size_t place = 0; place < kSamples; ++place) ++at[place][order[place]];
  }
  // Chi-square with 81 degrees of freedom: above 150 it would be one chance in a million.
  double chi_square = 0;
  constexpr double kExpected = double{kEpochs} / double{kSamples};
  for (const auto& row : at)
    for (const std::uint64_t count : row) {
      const double difference = static_cast<double>(count) - kExpected;
      chi_square += difference * difference / kExpected;
    }
  EXPECT_LT(chi_square, 150.0);
}

TEST(Sampler, threads_may_ask_at_once) {
  const auto from = sampler({.samples = 1000, .batch = 8, .ranks = 4, .seed = 1});
  const auto alone = sampler({.samples = 1000, .batch = 8, .ranks = 4, .seed = 1});
  std::vector<Indices> got[4];
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      for (std::uint64_t step = 0; step < 500; ++step)
        got[rank].push_back(from->samples(step + rank * 60, rank));
    });
  for (auto& thread : threads) thread.join();
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    for (std::uint64_t step = 0; step < 500; ++step)
      ASSERT_EQ(got[rank][step], alone->samples(step + rank * 60, rank));
}

TEST(Sampler, options_that_make_no_batch_are_refused_with_their_numbers) {
  const auto refused = [](const SamplerOptions& options) {
    auto made = Sampler::make(options);
    EXPECT_EQ(made.code(), Code::invalid_argument);
    return made.ok() ? "" : made.error().message;
  };
  EXPECT_THAT(refused({.samples = 10, .batch = 12, .ranks = 4}),
              HasSubstr("10 samples, which is not one batch of 12"));
  EXPECT_THAT(refused({.samples = 10, .batch = 5, .ranks = 4}), HasSubstr("a batch of 5"));
  EXPECT_THAT(refused({.samples = 10, .batch = 0, .ranks = 1}), HasSubstr("a batch of 0"));
  EXPECT_THAT(refused({.samples = 10, .batch = 5, .ranks = 0}), HasSubstr("by 0 ranks"));
  EXPECT_THAT(refused({.samples = std::uint64_t{1} << 32, .batch = 1, .ranks = 1}),
              HasSubstr("at most 4294967295"));
}

TEST(TestShare, parts_follow_each_other_and_differ_by_one_at_most) {
  for (const std::uint64_t samples : {0, 1, 7, 8, 1000, 1003})
    for (const std::uint32_t ranks : {1u, 3u, 8u}) {
      std::uint64_t at = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const TestShare share = test_share(samples, ranks, rank);
        EXPECT_EQ(share.begin, at);
        EXPECT_GE(share.end - share.begin, samples / ranks);
        EXPECT_LE(share.end - share.begin, samples / ranks + 1);
        at = share.end;
      }
      EXPECT_EQ(at, samples);
    }
}

}  // namespace
}  // namespace troupe::train
