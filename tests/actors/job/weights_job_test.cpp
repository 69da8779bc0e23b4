// Jobs that start from a file of weights.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/checkpoint/safetensors.hpp"
#include "actors/job/job_runner.hpp"
#include "tests/actors/job/cluster.hpp"
#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class JobFromWeights : public testing::Test {
protected:
  /// What another job ended with: the file that jobs here start from.
  JobFromWeights() {
    auto config = job();
    config.model.weights.clear();
    config.seed = 7;
    config.checkpoint.directory = folder_.path() / "before";
    std::filesystem::rename(run(1, config)->path, weights_);
  }

  JobConfig job() const {
    auto config = synthetic_job(folder_.path());
    config.model.weights = weights_;
    return config;
  }
  Result<JobEnded> run(std::size_t nodes, const JobConfig& config) {
    Cluster cluster(nodes);
    recorder_ = {};
    return JobRunner(*cluster.head, config, {}, recorder_).run();
  }
  std::string error_of(const JobConfig& config) {
    const auto ended = run(1, config);
    return ended.ok() ? "none" : to_string(ended.error());
  }

  TemporaryFolder folder_;
  const std::filesystem::path weights_ = folder_.path() / "weights.safetensors";
  Recorder recorder_;
};

TEST_F(JobFromWeights, ends_in_the_same_weights_on_any_number_of_nodes) {
  const auto one = run(1, job());
  ASSERT_TRUE(one.ok()) << one.error().message;
  const double first_loss = recorder_.steps.front().loss;
  EXPECT_EQ(run(3, job())->sha256, one->sha256);
  auto without = job();
  without.model.weights.clear();
  EXPECT_NE(run(1, without)->sha256, one->sha256);
  EXPECT_LT(first_loss, recorder_.steps.front().loss / 2) << "it has learnt before";
}

TEST_F(JobFromWeights, starts_what_is_fresh_by_the_seed) {
  auto config = job();
  config.epochs = 1;
  config.optimizer.lr = 1e-30;  // weights stay
  config.optimizer.momentum = 0;
  config.model.fresh = {"fc2.weight", "fc2.bias"};
  const auto ended = run(1, config);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  auto by_seed = config;
  by_seed.model.weights.clear();
  by_seed.model.fresh.clear();
  by_seed.checkpoint.directory = folder_.path() / "by-seed";
  PosixFileSystem files;
  const auto result = read_safetensors(files, ended->path).value();
  const auto before = read_safetensors(files, weights_).value();
  const auto seeded = read_safetensors(files, run(1, by_seed)->path).value();
  const auto same = [&](const TensorFile& other, const char* name) {
    return std::ranges::equal(result.find(name)->bytes, other.find(name)->bytes);
  };
  EXPECT_TRUE(same(before, "fc1.weight"));
  EXPECT_FALSE(same(seeded, "fc1.weight"));
  EXPECT_TRUE(same(seeded, "fc2.weight"));
  EXPECT_FALSE(same(before, "fc2.weight"));
}

TEST_F(JobFromWeights, that_is_resumed_does_without_the_file) {
  const auto expected = run(1, job())->sha256;
  Cluster cluster(2);
  Recorder recorder;
  JobRunner runner(*cluster.head, job(), {}, recorder);
  recorder.at_step = [&](std::uint64_t step) {
    if (step == 6) runner.cancel();
  };
  EXPECT_EQ(runner.run().code(), Code::cancelled);
  std::filesystem::remove(weights_);
  Recorder again;
  const auto ended = JobRunner(*cluster.head, job(), {.job = 2, .resume = true}, again).run();
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(ended->sha256, expected);
}

TEST_F(JobFromWeights, ends_with_what_is_wrong_with_the_file) {
  auto config = job();
  config.model.hidden = {16};
  EXPECT_THAT(error_of(config), AllOf(HasSubstr("weights.safetensors"), HasSubstr("'fc1.weight'"),
                                      HasSubstr("[32, 64]"), HasSubstr("[16, 64]")));
  config = job();
  config.model.fresh = {"fc9.weight"};
  EXPECT_THAT(error_of(config), AllOf(HasSubstr("model.fresh"), HasSubstr("'fc9.weight'")));
  std::filesystem::resize_file(weights_, 1000);
  EXPECT_THAT(error_of(job()), AllOf(HasSubstr("weights.safetensors"), HasSubstr("corrupt_data")));
  std::filesystem::remove(weights_);
  EXPECT_THAT(error_of(job()), AllOf(HasSubstr("weights.safetensors"), HasSubstr("model.weights")));
}

}  // namespace
}  // namespace troupe::train
