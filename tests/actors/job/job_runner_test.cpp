#include "actors/job/job_runner.hpp"

#include <algorithm>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/job/cluster.hpp"
#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

std::string undisturbed_hash(std::size_t nodes) {
  TemporaryFolder folder;
  Cluster cluster(nodes);
  Recorder recorder;
  JobRunner runner(*cluster.head, synthetic_job(folder.path()), {}, recorder);
  auto ended = runner.run();
  EXPECT_TRUE(ended.ok()) << (ended.ok() ? "" : ended.error().message);
  return ended.ok() ? ended->sha256 : "";
}

TEST(JobRunner, trains_to_the_end_and_says_each_step_and_epoch_once) {
  TemporaryFolder folder;
  Cluster cluster(2);
  Recorder recorder;
  JobRunner runner(*cluster.head, synthetic_job(folder.path()), {}, recorder);
  auto ended = runner.run();
  ASSERT_TRUE(ended.ok()) << ended.error().message;

  ASSERT_EQ(recorder.steps.size(), 20u);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(recorder.steps[i].step, i);
  ASSERT_EQ(recorder.epochs.size(), 2u);
  EXPECT_EQ(recorder.epochs[1].test_samples, 100u);
  EXPECT_GT(recorder.epochs[1].test_accuracy, 0.95);
  EXPECT_LT(recorder.steps.back().loss, recorder.steps.front().loss / 4);
  ASSERT_EQ(recorder.ended.size(), 1u);
  EXPECT_EQ(ended->steps, 20u);
  EXPECT_TRUE(std::filesystem::exists(ended->path));
  EXPECT_EQ(ended->sha256.size(), 64u);
}

TEST(JobRunner, says_when_a_rank_has_more_threads_than_its_node_has_cpus) {
  const auto notices = [](std::uint64_t threads) {
    TemporaryFolder folder;
    auto config = synthetic_job(folder.path());
    config.threads_per_rank = threads;
    Cluster cluster(1);
    Recorder recorder;
    EXPECT_TRUE(JobRunner(*cluster.head, config, {}, recorder).run().ok());
    return recorder.notices;
  };
  const std::uint64_t cpus = std::thread::hardware_concurrency();
  EXPECT_THAT(notices(1), testing::IsEmpty());
  EXPECT_THAT(notices(cpus + 1),
              testing::ElementsAre(testing::AllOf(
                  testing::HasSubstr(fmt::format("job.threads_per_rank is {}", cpus + 1)),
                  testing::HasSubstr(fmt::format("{} CPUs", cpus)))));
}

TEST(JobRunner, ends_in_the_same_weights_on_any_number_of_nodes) {
  const auto on_one = undisturbed_hash(1);
  ASSERT_FALSE(on_one.empty());
  for (std::size_t nodes : {2, 3, 4, 8}) EXPECT_EQ(undisturbed_hash(nodes), on_one) << nodes;
}

TEST(JobRunner, a_cancelled_job_resumes_to_the_weights_of_an_undisturbed_one) {
  TemporaryFolder folder;
  Cluster cluster(2);
  Recorder recorder;
  JobRunner first(*cluster.head, synthetic_job(folder.path()), {}, recorder);
  recorder.at_step = [&](std::uint64_t step) {
    if (step == 6) first.cancel();
  };
  auto cancelled = first.run();
  ASSERT_EQ(cancelled.code(), Code::cancelled);
  EXPECT_NE(cancelled.error().message.find("--resume"), std::string::npos);

  Recorder again;
  JobRunner second(*cluster.head, synthetic_job(folder.path()), {.job = 2, .resume = true}, again);
  auto ended = second.run();
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_GE(again.started.first_step, 7u);
  EXPECT_EQ(ended->sha256, undisturbed_hash(1));
}

TEST(JobRunner, goes_on_without_a_lost_node_to_the_same_weights) {
  const auto undisturbed = undisturbed_hash(1);
  for (const std::uint64_t when : {0, 5, 9, 10, 18, 19}) {  // 9 and 19 are the epochs' last steps
    TemporaryFolder folder;
    Cluster cluster(3);
    Recorder recorder;
    JobRunner runner(*cluster.head, synthetic_job(folder.path()), {}, recorder);
    std::thread stopper;
    recorder.at_step = [&](std::uint64_t step) {
      if (step == when) stopper = std::thread([&] { cluster.nodes[1]->stop(); });
    };
    auto ended = runner.run();
    if (stopper.joinable()) stopper.join();
    ASSERT_TRUE(ended.ok()) << ended.error().message;
    EXPECT_EQ(ended->sha256, undisturbed) << when;
    ASSERT_EQ(recorder.epochs.size(), 2u);
    for (const auto& epoch : recorder.epochs) EXPECT_EQ(epoch.test_samples, 100u);
    for (std::size_t i = 1; i < recorder.steps.size(); ++i)
      EXPECT_GT(recorder.steps[i].step, recorder.steps[i - 1].step);
  }
}

TEST(JobRunner, takes_in_nodes_that_join_and_ends_in_the_same_weights) {
  TemporaryFolder folder;
  Cluster cluster(1);
  auto config = synthetic_job(folder.path());
  config.epochs = 300;
  config.checkpoint.every_steps = 0;
  Recorder recorder;
  JobRunner runner(*cluster.head, config, {}, recorder);
  std::thread joiner;
  recorder.at_step = [&](std::uint64_t step) {
    if (step != 3) return;
    joiner = std::thread([&] {
      for (int i = 0; i < 2; ++i)
        cluster.nodes.push_back(Runtime::join(cluster.head->address(), options(1)).value());
    });
  };
  auto ended = runner.run();
  joiner.join();
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  ASSERT_FALSE(recorder.notices.empty());
  EXPECT_TRUE(std::any_of(recorder.notices.begin(), recorder.notices.end(), [](const auto& notice) {
    return notice.find("goes on") != std::string::npos;
  })) << recorder.notices.back();

  TemporaryFolder other;
  Cluster one(1);
  Recorder quiet;
  auto same = synthetic_job(other.path());
  same.epochs = 300;
  JobRunner alone(*one.head, same, {}, quiet);
  auto expected = alone.run();
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  EXPECT_EQ(ended->sha256, expected->sha256);
}

TEST(JobRunner, below_its_least_nodes_a_job_ends_with_the_lost_one_s_name_and_a_checkpoint) {
  TemporaryFolder folder;
  Cluster cluster(3);
  Recorder recorder;
  auto config = synthetic_job(folder.path());
  config.elastic.min_nodes = 3;
  config.elastic.wait_seconds = 0;
  JobRunner runner(*cluster.head, config, {}, recorder);
  recorder.at_step = [&](std::uint64_t step) {
    if (step == 5) std::thread([&] { cluster.nodes[1]->stop(); }).detach();
  };
  auto ended = runner.run();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.code(), Code::unavailable);
  EXPECT_NE(ended.error().message.find("was lost"), std::string::npos) << ended.error().message;
  EXPECT_NE(ended.error().message.find("step-"), std::string::npos) << ended.error().message;
  cluster.nodes[1]->stop();  // waits for the thread above
}

TEST(JobRunner, without_nodes_is_an_error_that_says_how_to_get_one) {
  TemporaryFolder folder;
  Cluster cluster(0);
  Recorder recorder;
  auto config = synthetic_job(folder.path());
  config.elastic.wait_seconds = 0;
  auto ended = JobRunner(*cluster.head, config, {}, recorder).run();
  ASSERT_EQ(ended.code(), Code::unavailable);
  EXPECT_NE(ended.error().message.find("troupe node"), std::string::npos);
  EXPECT_EQ(recorder.ended.size(), 1u);
}

TEST(JobRunner, without_nodes_waits_for_one) {
  TemporaryFolder folder;
  Cluster cluster(0);
  Recorder recorder;
  JobRunner runner(*cluster.head, synthetic_job(folder.path()), {}, recorder);
  std::thread later([&] { cluster.add(); });
  EXPECT_TRUE(runner.run().ok());
  later.join();
}

TEST(JobRunner, that_may_use_fewer_nodes_than_it_needs_is_an_error) {
  TemporaryFolder folder;
  Cluster cluster(0);
  Recorder recorder;
  auto config = synthetic_job(folder.path());
  config.elastic.min_nodes = 2;
  auto ended = JobRunner(*cluster.head, config, {.nodes = 1}, recorder).run();
  ASSERT_EQ(ended.code(), Code::invalid_argument);
  EXPECT_NE(ended.error().message.find("elastic.min_nodes is 2"), std::string::npos);
}

TEST(JobRunner, a_missing_data_file_is_named) {
  TemporaryFolder folder;
  Cluster cluster(2);
  Recorder recorder;
  auto config = synthetic_job(folder.path());
  config.data.train_labels = "nothing-here";
  auto ended = JobRunner(*cluster.head, config, {}, recorder).run();
  ASSERT_FALSE(ended.ok());
  EXPECT_NE(ended.error().message.find("nothing-here"), std::string::npos);
}

TEST(JobRunner, resuming_without_a_checkpoint_is_an_error) {
  TemporaryFolder folder;
  Cluster cluster(1);
  Recorder recorder;
  auto ended =
      JobRunner(*cluster.head, synthetic_job(folder.path()), {.resume = true}, recorder).run();
  EXPECT_EQ(ended.code(), Code::not_found);
}

}  // namespace
}  // namespace troupe::train
