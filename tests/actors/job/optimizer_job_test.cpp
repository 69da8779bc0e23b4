// Jobs with each optimizer: what it keeps between steps goes wherever the weights go.
#include <thread>

#include <gtest/gtest.h>

#include "actors/job/job_runner.hpp"
#include "tests/actors/job/cluster.hpp"
#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

OptimizerConfig optimizer(const std::string& name) {
  OptimizerConfig x{.name = name, .lr = 0.01, .weight_decay = 0.01};
  if (name == "sgd") x = {.name = name, .lr = 0.1, .momentum = 0.9, .nesterov = true};
  if (name == "lars") x = {.name = name, .lr = 5, .momentum = 0.9, .trust_coefficient = 0.01};
  if (name == "lamb") x.lr = 0.05;
  x.decay_vectors = name == "adam" || name == "lars";
  x.clip_norm = 1;
  x.schedule = {.kind = "one_cycle", .div_factor = 4};
  return x;
}

struct Case {
  std::string optimizer;
  std::string device = "cpu";
};

class OptimizerJob : public testing::TestWithParam<Case> {
protected:
  static JobConfig job(const TemporaryFolder& folder) {
    auto config = synthetic_job(folder.path());
    config.optimizer = optimizer(GetParam().optimizer);
    config.device = GetParam().device;
    return config;
  }

  /// The hash of the final weights, empty if there are none.
  static std::string run(Cluster& cluster, const JobConfig& config, Recorder& recorder,
                         const JobRunner::Options& how = {}) {
    const auto ended = JobRunner(*cluster.head, config, how, recorder).run();
    EXPECT_TRUE(ended.ok()) << (ended.ok() ? "" : ended.error().message);
    return ended.ok() ? ended->sha256 : "";
  }

  static std::string undisturbed(std::size_t nodes) {
    TemporaryFolder folder;
    Cluster cluster(nodes);
    Recorder recorder;
    const auto hash = run(cluster, job(folder), recorder);
    if (hash.empty()) return hash;
    EXPECT_LT(recorder.steps.back().loss, recorder.steps.front().loss / 2);
    return hash;
  }
};

TEST_P(OptimizerJob, learns_and_ends_in_the_same_weights_on_any_number_of_nodes) {
  const auto on_one = undisturbed(1);
  ASSERT_FALSE(on_one.empty());
  for (const std::size_t nodes : {2, 4}) EXPECT_EQ(undisturbed(nodes), on_one) << nodes;
}

std::string name_of(const testing::TestParamInfo<Case>& x) {
  return x.param.optimizer + (x.param.device == "cpu" ? "" : "_" + x.param.device);
}

INSTANTIATE_TEST_SUITE_P(Of, OptimizerJob,
                         testing::Values(Case{"sgd"}, Case{"adam"}, Case{"adamw"}, Case{"lamb"},
                                         Case{"lars"}, Case{"lars", "simulated"}),
                         name_of);

using DisturbedOptimizerJob = OptimizerJob;

TEST_P(DisturbedOptimizerJob, hands_its_state_to_a_node_that_takes_a_lost_ones_place) {
  TemporaryFolder folder;
  Cluster cluster(2);
  auto config = job(folder);
  config.elastic.min_nodes = 2;
  config.checkpoint.every_steps = 0;
  Recorder recorder;
  std::thread changer;
  recorder.at_step = [&](std::uint64_t step) {
    if (step != 7) return;
    changer = std::thread([&] {
      cluster.nodes[1]->stop();
      cluster.nodes.push_back(Runtime::join(cluster.head->address(), options(1)).value());
    });
  };
  const auto hash = run(cluster, config, recorder);
  if (changer.joinable()) changer.join();
  EXPECT_EQ(hash, undisturbed(1));
}

TEST_P(DisturbedOptimizerJob, goes_on_without_a_lost_node) {
  TemporaryFolder folder;
  Cluster cluster(3);
  Recorder recorder;
  std::thread stopper;
  recorder.at_step = [&](std::uint64_t step) {
    if (step == 7) stopper = std::thread([&] { cluster.nodes[1]->stop(); });
  };
  const auto hash = run(cluster, job(folder), recorder);
  if (stopper.joinable()) stopper.join();
  EXPECT_EQ(hash, undisturbed(1));
}

TEST_P(DisturbedOptimizerJob, resumes_with_its_state) {
  TemporaryFolder folder;
  Cluster cluster(2);
  Recorder recorder, again;
  const auto config = job(folder);
  JobRunner first(*cluster.head, config, {}, recorder);
  recorder.at_step = [&](std::uint64_t step) {
    if (step == 6) first.cancel();
  };
  ASSERT_EQ(first.run().code(), Code::cancelled);
  const auto hash = run(cluster, config, again, {.job = 2, .resume = true});
  EXPECT_GE(again.started.first_step, 7u);
  EXPECT_EQ(hash, undisturbed(1));
}

INSTANTIATE_TEST_SUITE_P(Of, DisturbedOptimizerJob,
                         testing::Values(Case{"adamw"}, Case{"lamb"}, Case{"adamw", "simulated"},
                                         Case{"lamb", "simulated"}),
                         name_of);

}  // namespace
}  // namespace troupe::train
