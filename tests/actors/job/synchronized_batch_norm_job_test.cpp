// Jobs whose ranks wait for each other in the middle of their passes.
#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "actors/checkpoint/safetensors.hpp"
#include "actors/job/job_runner.hpp"
#include "tests/actors/job/cluster.hpp"
#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

JobConfig synchronized_job(const std::filesystem::path& folder) {
  auto config = synthetic_resnet_job(folder);
  config.model.width = 8;
  config.model.synchronized_batch_norm = true;
  config.operation.bucket_bytes = 4096;  // many, between which ranks wait
  return config;
}

/// The weights and statistics that a job ends with, to the last bit.
std::vector<std::byte> run(Cluster& cluster, const JobConfig& config, Recorder& recorder) {
  const auto ended = JobRunner(*cluster.head, config, {}, recorder).run();
  EXPECT_TRUE(ended.ok()) << ended.error().message;
  if (!ended.ok()) return {};
  PosixFileSystem files;
  std::vector<std::byte> bytes;
  for (const auto& tensor : read_safetensors(files, ended->path).value().tensors)
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  return bytes;
}

std::vector<std::byte> run(std::size_t nodes, const JobConfig& config) {
  Cluster cluster(nodes);
  Recorder recorder;
  return run(cluster, config, recorder);
}

TEST(JobWithSynchronizedBatchNorm, ends_in_the_same_weights_on_any_number_of_nodes) {
  TemporaryFolder folder;
  auto config = synchronized_job(folder.path());
  const auto one = run(1, config);
  EXPECT_EQ(run(2, config), one);
  EXPECT_EQ(run(4, config), one);
  config.model.synchronized_batch_norm = false;
  EXPECT_NE(run(2, config), one) << "or nothing was synchronized";
}

TEST(JobWithSynchronizedBatchNorm, that_loses_a_node_and_gains_one_ends_in_the_same) {
  TemporaryFolder folder;
  const auto config = synchronized_job(folder.path());
  const auto expected = run(1, config);
  Cluster cluster(3);
  Recorder recorder;
  std::thread changer;
  recorder.at_step = [&](std::uint64_t step) {
    if (step != 3) return;
    changer = std::thread([&] {
      cluster.nodes[1]->stop();
      cluster.add();
    });
  };
  EXPECT_EQ(run(cluster, config, recorder), expected);
  changer.join();
}

TEST(JobWithSynchronizedBatchNorm, on_devices_ends_in_the_weights_of_the_cpu) {
  TemporaryFolder folder;
  auto config = synchronized_job(folder.path());
  const auto expected = run(2, config);
  config.device = "simulated";
  EXPECT_EQ(run(2, config), expected);
}

TEST(JobWithSynchronizedBatchNorm, ends_when_it_is_cancelled_whoever_waits_for_whom) {
  TemporaryFolder folder;
  const auto config = synchronized_job(folder.path());
  Cluster cluster(2);
  Recorder recorder;
  JobRunner runner(*cluster.head, config, {}, recorder);
  recorder.at_step = [&](std::uint64_t step) {
    if (step == 2) runner.cancel();
  };
  EXPECT_EQ(runner.run().code(), Code::cancelled);
}

}  // namespace
}  // namespace troupe::train
