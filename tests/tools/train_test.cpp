#include <filesystem>
#include <fstream>
#include <regex>

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/actors/job/synthetic_job.hpp"
#include "tests/tools/process.hpp"

namespace troupe::tool {
namespace {

using std::chrono::seconds;
using testing::Test;
using train::TemporaryFolder;

/// A job file in a folder of its own.
class Train : public Test {
protected:
  std::string job_file(std::uint64_t epochs = 2) {
    auto config = train::synthetic_job(folder_.path());
    config.epochs = epochs;
    const auto path = folder_.path() / "job.toml";
    std::ofstream(path) << config.to_toml();
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(Train, ends_with_the_same_hash_on_one_and_on_three_nodes) {
  std::string hashes[2];
  for (int i : {0, 1}) {
    Process train({"train", job_file(), "--nodes", i == 0 ? "1" : "3"});
    ASSERT_EQ(train.wait(), 0) << train.output();
    hashes[i] = hash_in(train.output());
  }
  EXPECT_EQ(hashes[0].size(), 64u);
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST_F(Train, ends_with_the_same_mnist_weights_on_any_number_of_nodes) {
  const auto weights = folder_.path() / "final.safetensors";
  std::string first;
  for (const char* nodes : {"1", "2", "3", "4", "8"}) {
    std::filesystem::remove(weights);
    Process train({"train", TROUPE_EXAMPLES "/mnist/lenet.toml", "--nodes", nodes, "--set",
                   "job.epochs=2", "--set", "checkpoint.directory=" + folder_.path().string()});
    ASSERT_EQ(train.wait(), 0) << train.output();
    std::smatch accuracy;
    ASSERT_TRUE(std::regex_search(train.output(), accuracy,
                                  std::regex("epoch 2/2: test accuracy ([0-9.]+)%")))
        << train.output();
    EXPECT_GT(std::stod(accuracy[1]), 90.0) << train.output();
    std::ifstream file(weights, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (first.empty()) first = bytes;
    ASSERT_GT(bytes.size(), 100'000u);
    EXPECT_TRUE(bytes == first) << nodes << " nodes";
  }
}

TEST_F(Train, goes_on_after_kill_9_of_nodes_to_the_same_weights) {
  Process undisturbed({"train", job_file(400), "--nodes", "2"});
  ASSERT_EQ(undisturbed.wait(), 0) << undisturbed.output();

  Process train({"train", job_file(400), "--nodes", "4"});
  ASSERT_TRUE(train.read_until("epoch 2/")) << train.output();
  const auto nodes = children_of(train.pid());
  ASSERT_EQ(nodes.size(), 4u);
  kill(nodes[1], SIGKILL);
  ASSERT_TRUE(train.read_until("on 3 nodes")) << train.output();
  kill(nodes[0], SIGKILL);
  kill(nodes[2], SIGKILL);
  EXPECT_EQ(train.wait(), 0) << train.output();
  EXPECT_NE(train.output().find("was lost"), std::string::npos) << train.output();
  EXPECT_EQ(hash_in(train.output()), hash_in(undisturbed.output()));
  for (pid_t node : nodes) EXPECT_FALSE(runs(node));
}

TEST_F(Train, resumes_after_kill_9_of_a_node_it_needed_to_the_same_weights) {
  Process undisturbed({"train", job_file(400), "--nodes", "2"});
  ASSERT_EQ(undisturbed.wait(), 0) << undisturbed.output();

  Process train({"train", job_file(400), "--nodes", "3", "--set", "elastic.min_nodes=3", "--set",
                 "elastic.wait_seconds=0"});
  ASSERT_TRUE(train.read_until("epoch 2/")) << train.output();
  const auto nodes = children_of(train.pid());
  ASSERT_EQ(nodes.size(), 3u);
  kill(nodes[1], SIGKILL);
  EXPECT_EQ(train.wait(), 3) << train.output();
  EXPECT_NE(train.output().find("was lost"), std::string::npos) << train.output();
  EXPECT_NE(train.output().find("--resume"), std::string::npos) << train.output();
  for (pid_t node : nodes) EXPECT_FALSE(runs(node));

  Process resumed({"train", job_file(400), "--nodes", "2", "--resume"});
  ASSERT_EQ(resumed.wait(), 0) << resumed.output();
  EXPECT_EQ(hash_in(resumed.output()), hash_in(undisturbed.output()));
}

TEST_F(Train, ends_in_the_same_weights_amid_chaos) {
  for (const char* seed : {"1", "2"}) {
    Process chaos({"chaos", TROUPE_EXAMPLES "/mnist/lenet.toml", "--nodes", "3", "--events", "4",
                   "--seed", seed, "--set", "job.epochs=6", "--set",
                   "checkpoint.directory=" + folder_.path().string()});
    EXPECT_EQ(chaos.wait(), 0) << chaos.output();
    EXPECT_NE(chaos.output().find("the same weights"), std::string::npos) << chaos.output();
  }
}

TEST_F(Train, drains_on_an_interrupt_and_leaves_nothing_running) {
  Process train({"train", job_file(10000), "--nodes", "2"});
  ASSERT_TRUE(train.read_until("epoch 2/")) << train.output();
  const auto nodes = children_of(train.pid());
  ASSERT_EQ(nodes.size(), 2u);
  train.signal(SIGINT);
  EXPECT_EQ(train.wait(), 130) << train.output();
  EXPECT_NE(train.output().find("--resume"), std::string::npos) << train.output();
  for (pid_t node : nodes) EXPECT_FALSE(runs(node));
}

TEST(Cluster, a_node_leaves_and_a_head_ends_when_told_to_stop) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Head head;
    Process node({"node", "--head", head.address}), other({"node", "--head", head.address});
    ASSERT_TRUE(node.read_until("joined")) << node.output();
    ASSERT_TRUE(other.read_until("joined")) << other.output();
    node.signal(signal);
    EXPECT_EQ(node.wait(), 0) << node.output();
    EXPECT_NE(node.output().find("left the cluster"), std::string::npos) << node.output();
    head.process.signal(signal);
    EXPECT_EQ(head.process.wait(), 0) << head.process.output();
    EXPECT_EQ(other.wait(), 0) << other.output();
  }
}

TEST_F(Train, nodes_end_when_the_command_is_killed) {
  Process train({"train", job_file(10000), "--nodes", "2"});
  ASSERT_TRUE(train.read_until("epoch 2/")) << train.output();
  const auto nodes = children_of(train.pid());
  train.signal(SIGKILL);
  EXPECT_EQ(train.wait(seconds(30)), 128 + SIGKILL);  // the output ends when the nodes have ended
  for (pid_t node : nodes) EXPECT_TRUE(ends_soon(node));
}

}  // namespace
}  // namespace troupe::tool
