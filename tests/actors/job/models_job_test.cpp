// Jobs of models with more than weights, batch norms whose statistics are reduced over the ranks,
// and of models whose layers have more than a weight and a bias.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "actors/checkpoint/safetensors.hpp"
#include "actors/job/job_runner.hpp"
#include "tests/actors/job/cluster.hpp"
#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

JobEnded run(std::size_t nodes, const JobConfig& config) {
  Cluster cluster(nodes);
  Recorder recorder;
  auto ended = JobRunner(*cluster.head, config, {}, recorder).run();
  EXPECT_TRUE(ended.ok()) << ended.error().message;
  return ended.ok() ? *ended : JobEnded{};
}

TEST(JobOfAResNet, ends_in_the_same_weights_and_statistics_on_any_number_of_nodes) {
  TemporaryFolder folder;
  const auto one = run(1, synthetic_resnet_job(folder.path()));
  PosixFileSystem files;
  const auto weights = read_safetensors(files, one.path).value();
  const auto* const mean = weights.find("bn1.running_mean");
  ASSERT_NE(mean, nullptr);
  EXPECT_FALSE(std::ranges::all_of(mean->bytes, [](std::byte x) { return x == std::byte{0}; }));
  EXPECT_NE(weights.find("layer4.1.bn2.running_var"), nullptr);
  const auto* const batches = weights.find("layer4.1.bn2.num_batches_tracked");
  ASSERT_NE(batches, nullptr) << "PyTorch wants it";
  EXPECT_EQ(batches->bytes[0], static_cast<std::byte>(one.steps));
  EXPECT_EQ(run(2, synthetic_resnet_job(folder.path())).sha256, one.sha256);
  EXPECT_EQ(run(4, synthetic_resnet_job(folder.path())).sha256, one.sha256);
}

TEST(JobOfAResNet, that_loses_a_node_and_one_that_resumes_end_in_the_same_too) {
  TemporaryFolder folder;
  const auto expected = run(1, synthetic_resnet_job(folder.path())).sha256;
  Cluster cluster(3);
  Recorder recorder;
  JobRunner runner(*cluster.head, synthetic_resnet_job(folder.path()), {}, recorder);
  std::thread stopper;
  recorder.at_step = [&](std::uint64_t step) {
    if (step == 5) stopper = std::thread([&] { cluster.nodes[1]->stop(); });
    if (step == 12) runner.cancel();
  };
  EXPECT_EQ(runner.run().code(), Code::cancelled);
  stopper.join();
  Recorder again;
  auto ended = JobRunner(*cluster.head, synthetic_resnet_job(folder.path()),
                         {.job = 2, .resume = true}, again)
                   .run();
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(ended->sha256, expected);
}

TEST(JobOfAnLstm, over_the_rows_of_images_ends_in_the_same_weights_on_any_number_of_nodes) {
  TemporaryFolder folder;
  auto config = synthetic_resnet_job(folder.path());
  config.model.name = "lstm";
  config.model.small_images = false;
  config.model.layers = 2;
  const auto one = run(1, config);
  PosixFileSystem files;
  EXPECT_NE(read_safetensors(files, one.path).value().find("lstm.weight_hh_l1"), nullptr);
  EXPECT_EQ(run(2, config).sha256, one.sha256);
}

TEST(JobWithLabelSmoothing, has_no_loss_below_the_entropy_of_its_labels) {
  TemporaryFolder folder;
  auto config = synthetic_job(folder.path());
  const auto last_loss = [&] {
    Cluster cluster(1);
    Recorder recorder;
    EXPECT_TRUE(JobRunner(*cluster.head, config, {}, recorder).run().ok());
    return recorder.epochs.back().test_loss;
  };
  // Of four classes: 0.85 for one and 0.05 for each of the others.
  const double entropy = -(0.85 * std::log(0.85) + 3 * 0.05 * std::log(0.05));
  EXPECT_LT(last_loss(), entropy);
  config.model.label_smoothing = 0.2;
  EXPECT_GT(last_loss(), entropy);
}

/// The weights alone: a job's hash says on what it ran, too.
std::vector<std::byte> weights_in(const JobEnded& ended) {
  PosixFileSystem files;
  const auto content = read_safetensors(files, ended.path).value();
  std::vector<std::byte> bytes;
  for (const auto& tensor : content.tensors)
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  return bytes;
}

TEST(JobOnSimulatedDevices, ends_in_the_weights_of_the_cpu_though_it_loses_a_node) {
  TemporaryFolder folder;
  auto config = synthetic_job(folder.path());
  const auto expected = weights_in(run(2, config));
  config.device = "simulated";
  EXPECT_EQ(weights_in(run(1, config)), expected);
  Cluster cluster(3);
  Recorder recorder;
  JobRunner runner(*cluster.head, config, {}, recorder);
  std::thread stopper;
  recorder.at_step = [&](std::uint64_t step) {
    if (step == 5) stopper = std::thread([&] { cluster.nodes[1]->stop(); });
  };
  const auto ended = runner.run();
  stopper.join();
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(weights_in(*ended), expected);
}

// A device may have no room for those of two generations.
TEST(JobOnSimulatedDevices, has_no_passes_in_memory_when_the_next_generation_begins) {
  TemporaryFolder folder;
  auto config = synthetic_job(folder.path());
  config.device = "simulated";
  config.epochs = 10'000;  // until a node has been taken in
  const auto context = std::make_shared<NodeContext>();
  struct Memory final : JobObserver {
    void on_started(const JobStarted&) override { at_start = used(); }
    void on_step(const StepFinished& x) override {
      if (x.step != 4) return;
      in_steps = used();
      cluster->add();
    }
    void on_generation(const GenerationBegun&) override {
      at_change = used();
      runner->cancel();
    }
    std::size_t used() const {
      train::Setup setup;
      setup.job = 1;
      return context->job(setup).value()->device().memory().used;
    }

    std::shared_ptr<NodeContext> context;
    Cluster* cluster = nullptr;
    JobRunner* runner = nullptr;
    std::size_t at_start = 0, in_steps = 0;
    std::optional<std::size_t> at_change;
  } memory;
  Cluster cluster(0);
  cluster.add(options(1, context));
  ASSERT_TRUE(cluster.head->wait_for_nodes(1, std::chrono::seconds(20)).ok());
  memory.context = context;
  memory.cluster = &cluster;
  JobRunner runner(*cluster.head, config, {}, memory);
  memory.runner = &runner;
  EXPECT_EQ(runner.run().code(), Code::cancelled);
  ASSERT_TRUE(memory.at_change);
  EXPECT_GT(memory.in_steps, memory.at_start);
  EXPECT_LE(*memory.at_change, memory.at_start);
}

}  // namespace
}  // namespace troupe::train
