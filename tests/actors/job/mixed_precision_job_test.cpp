// Jobs whose gradients are scaled, and whose products are of a narrow type.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/checkpoint/safetensors.hpp"
#include "actors/job/job_runner.hpp"
#include "kernels/workspace.hpp"
#include "tests/actors/job/cluster.hpp"
#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

struct Outcome {
  std::vector<std::byte> weights;
  std::string hash;
  Recorder recorder;
};

void run(std::size_t nodes, const JobConfig& config, Outcome& outcome,
         const JobRunner::Options& how = {}) {
  Cluster cluster(nodes);
  const auto ended = JobRunner(*cluster.head, config, how, outcome.recorder).run();
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  outcome.hash = ended->sha256;
  PosixFileSystem files;
  for (const auto& tensor : read_safetensors(files, ended->path).value().tensors)
    outcome.weights.insert(outcome.weights.end(), tensor.bytes.begin(), tensor.bytes.end());
}

std::ptrdiff_t skipped(const Outcome& outcome) {
  return std::ranges::count_if(outcome.recorder.steps, [](const auto& x) { return x.skipped; });
}

TEST(JobWithALossScale, ends_in_the_weights_of_one_without) {
  TemporaryFolder folder;
  auto config = synthetic_job(folder.path());
  config.optimizer.clip_norm = 1;
  Outcome plain, scaled;
  run(1, config, plain);
  config.optimizer.loss_scale = 1024;
  run(2, config, scaled);
  EXPECT_EQ(scaled.weights, plain.weights);
  EXPECT_EQ(skipped(scaled), 0);
}

TEST(JobWithALossScale, that_is_too_great_leaves_steps_out_alike_on_any_number_of_nodes) {
  TemporaryFolder folder;
  auto config = synthetic_job(folder.path());
  config.optimizer.loss_scale = 0x1p127;
  config.optimizer.loss_scale_steps = 5;
  Outcome one, three;
  run(1, config, one);
  EXPECT_GT(skipped(one), 1) << "it doubles, and is too great again";
  EXPECT_TRUE(one.recorder.steps.front().skipped);
  EXPECT_LT(one.recorder.steps.back().loss, one.recorder.steps.front().loss);
  run(3, config, three);
  EXPECT_EQ(three.hash, one.hash);
  EXPECT_EQ(skipped(three), skipped(one));
}

TEST(JobWithALossScale, goes_on_with_it_from_a_checkpoint) {
  TemporaryFolder folder;
  auto config = synthetic_job(folder.path());
  config.optimizer.loss_scale = 0x1p127;
  config.optimizer.loss_scale_steps = 4;
  config.checkpoint.every_steps = 7;
  Outcome whole, resumed;
  run(1, config, whole);
  {
    Cluster cluster(1);
    Recorder recorder;
    JobRunner runner(*cluster.head, config, {}, recorder);
    recorder.at_step = [&](std::uint64_t step) {
      if (step == 9) runner.cancel();
    };
    EXPECT_EQ(runner.run().code(), Code::cancelled);
  }
  run(2, config, resumed, {.job = 2, .resume = true});
  EXPECT_EQ(resumed.hash, whole.hash);
}

TEST(JobInBf16, learns_and_ends_in_the_same_weights_on_any_number_of_nodes) {
  const Status there = kernels::WorkspaceOptions{.precision = kernels::DType::bf16}.validate();
  if (!there.ok()) GTEST_SKIP() << there.error().message;
  TemporaryFolder folder;
  auto config = synthetic_job(folder.path());
  Outcome exact, one, two;
  run(1, config, exact);
  config.precision = "bf16";
  run(1, config, one);
  run(2, config, two);
  EXPECT_EQ(two.hash, one.hash);
  EXPECT_NE(one.weights, exact.weights);
  EXPECT_LT(one.recorder.steps.back().loss, one.recorder.steps.front().loss / 2);
}

TEST(JobInF16, says_that_the_cpu_has_none) {
  TemporaryFolder folder;
  auto config = synthetic_job(folder.path());
  config.precision = "f16";
  Cluster cluster(1);
  Recorder recorder;
  const auto ended = JobRunner(*cluster.head, config, {}, recorder).run();
  ASSERT_EQ(ended.code(), Code::not_supported);
  EXPECT_THAT(ended.error().message, testing::HasSubstr("take bf16 or f32"));
}

}  // namespace
}  // namespace troupe::train
