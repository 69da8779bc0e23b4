#include "actors/data/skip_bad_samples.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/data/data_files.hpp"

namespace troupe::train {
namespace {

using testing::HasSubstr;

/// Samples of one byte, their index; some are damaged or cannot be reached.
class FakeSet final : public Dataset {
public:
  FakeSet(std::uint64_t count, std::set<std::uint64_t> bad,
          std::set<std::uint64_t> unreachable = {})
      : count_(count), bad_(std::move(bad)), unreachable_(std::move(unreachable)) {}
  std::uint64_t count() const override { return count_; }
  const SampleLayout& layout() const override { return layout_; }
  const std::string& content_hash() const override { return hash_; }
  Status read(std::uint64_t index, Use, std::span<std::byte> input,
              std::span<std::byte>) const override {
    if (bad_.contains(index)) return {Code::corrupt_data, "bad " + std::to_string(index)};
    if (unreachable_.contains(index)) return {Code::io_error, "no disk"};
    input[0] = static_cast<std::byte>('0' + index);
    return {};
  }

private:
  std::uint64_t count_;
  std::set<std::uint64_t> bad_, unreachable_;
  SampleLayout layout_{kernels::DType::u8, {1}, {}};
  std::string hash_ = "hash";
};

TEST(SkipBadSamples, takes_the_next_one_and_behind_the_last_the_first) {
  const SkipBadSamples set(std::make_unique<FakeSet>(6, std::set<std::uint64_t>{2, 3, 5}));
  EXPECT_EQ(set.found().count, 0u);
  EXPECT_EQ(read_sample(set, 2)->input, "4");
  EXPECT_EQ(read_sample(set, 5)->input, "0");
  EXPECT_EQ(read_sample(set, 1)->input, "1");
  EXPECT_EQ(read_sample(set, 3)->input, "4");
  EXPECT_EQ(set.found().count, 3u);  // each counts once
  EXPECT_EQ(set.found().first, "bad 2");
}

TEST(SkipBadSamples, other_errors_stay) {
  const SkipBadSamples set(
      std::make_unique<FakeSet>(3, std::set<std::uint64_t>{0}, std::set<std::uint64_t>{1}));
  EXPECT_EQ(read_sample(set, 0).code(), Code::io_error);
  EXPECT_EQ(read_sample(set, 2)->input, "2");
}

TEST(SkipBadSamples, a_set_of_nothing_else_is_an_error) {
  const SkipBadSamples set(std::make_unique<FakeSet>(2, std::set<std::uint64_t>{0, 1}));
  EXPECT_EQ(read_sample(set, 1).code(), Code::corrupt_data);
  EXPECT_THAT(read_sample(set, 1).error().message,
              HasSubstr("2 samples from 1 on are all damaged"));
}

}  // namespace
}  // namespace troupe::train
