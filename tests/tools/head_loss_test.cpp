// Clusters whose head dies, is followed by another, or whose nodes are sent away in order.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/actors/job/synthetic_job.hpp"
#include "tests/runtime/control/etcd_server.hpp"
#include "tests/tools/process.hpp"

namespace troupe::tool {
namespace {

using testing::Test;

class HeadLoss : public Test {
protected:
  using Arguments = std::vector<std::string>;

  /// A job of some seconds that writes checkpoints all the time.
  std::string job_file(std::uint64_t epochs) {
    auto config = train::synthetic_job(folder_.path());
    config.epochs = epochs;
    config.checkpoint.every_steps = 50;
    const auto path = folder_.path() / "job.toml";
    std::ofstream(path) << config.to_toml();
    return path;
  }
  std::string undisturbed_hash(std::uint64_t epochs) {
    Process train({"train", job_file(epochs), "--nodes", "2"});
    EXPECT_EQ(train.wait(), 0) << train.output();
    return hash_in(train.output());
  }
  std::string store() const { return "sqlite:" + (folder_.path() / "head.db").string(); }
  std::string start_nodes(const std::string& head, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto name = "node-" + std::to_string(nodes_.size() + 1);
      nodes_.push_back(
          std::make_unique<Process>(Arguments{"node", "--head", head, "--name", name}));
    }
    for (auto& node : nodes_) EXPECT_TRUE(node->read_until("joined")) << node->output();
    return head;
  }
  std::uint64_t newest_checkpoint() const {
    std::uint64_t newest = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "checkpoints")) {
      std::smatch match;
      const auto name = entry.path().filename().string();
      if (std::regex_match(name, match, std::regex("step-([0-9]+)\\.safetensors")))
        newest = std::max<std::uint64_t>(newest, std::stoull(match[1]));
    }
    return newest;
  }
  /// True once there is a later checkpoint than now, two times.
  bool job_goes_on() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (auto before = newest_checkpoint(); std::chrono::steady_clock::now() < until;)
      if (newest_checkpoint() >= before + 100) return true;
    return false;
  }

  train::TemporaryFolder folder_;
  std::vector<std::unique_ptr<Process>> nodes_;
};

TEST_F(HeadLoss, a_job_goes_on_without_its_head_and_the_next_one_takes_it_over) {
  const auto expected = undisturbed_hash(500);
  auto head = std::make_unique<Head>(Arguments{}, Arguments{"--store", store()});
  const auto address = start_nodes(head->address, 3);
  Process submit({"submit", job_file(500), "--head", address});
  ASSERT_TRUE(submit.read_until("epoch 3/")) << submit.output();

  head->process.signal(SIGKILL);
  head->process.wait();
  ASSERT_TRUE(submit.read_until("waiting for another head")) << submit.output();
  EXPECT_TRUE(job_goes_on());
  Process late({"node", "--head", address, "--name", "late", "--join-timeout", "60"});

  Process next({"head", "--listen", address, "--store", store()});
  ASSERT_TRUE(next.read_until("listens")) << next.output();
  ASSERT_TRUE(late.read_until("joined")) << late.output();
  Process status({"status", "--head", address});
  EXPECT_EQ(status.wait(), 0) << status.output();
  for (const char* text : {"node-1", "node-2", "node-3", "late"})
    EXPECT_NE(status.output().find(text), std::string::npos) << text << "\n" << status.output();
  EXPECT_TRUE(std::regex_search(status.output(), std::regex("synthetic +(running|done)")))
      << status.output();
  EXPECT_EQ(submit.wait(), 0) << submit.output();
  EXPECT_EQ(hash_in(submit.output()), expected);
  for (auto& node : nodes_) EXPECT_TRUE(runs(node->pid()));

  next.signal(SIGTERM);
  EXPECT_EQ(next.wait(), 0) << next.output();
  for (auto& node : nodes_) EXPECT_EQ(node->wait(), 0) << node->output();
}

TEST_F(HeadLoss, a_node_that_dies_while_there_is_no_head_is_missed_by_the_next) {
  const auto expected = undisturbed_hash(500);
  auto head = std::make_unique<Head>(Arguments{}, Arguments{"--store", store()});
  const auto address = start_nodes(head->address, 3);
  Process submit({"submit", job_file(500), "--head", address});
  ASSERT_TRUE(submit.read_until("epoch 3/")) << submit.output();
  head->process.signal(SIGKILL);
  head->process.wait();
  nodes_[1]->signal(SIGKILL);
  nodes_[1]->wait();
  Process next({"head", "--listen", address, "--store", store()});
  EXPECT_EQ(submit.wait(), 0) << submit.output();
  EXPECT_EQ(hash_in(submit.output()), expected);
}

TEST_F(HeadLoss, a_second_head_of_one_store_is_refused_and_a_standby_waits) {
  Head head({}, {"--store", store()});
  Process second({"head", "--listen", "127.0.0.1:0", "--store", store()});
  EXPECT_NE(second.wait(), 0) << second.output();
  EXPECT_NE(second.output().find(std::to_string(head.process.pid())), std::string::npos)
      << second.output();
  Process standby({"head", "--listen", "127.0.0.1:0", "--store", store(), "--standby"});
  ASSERT_TRUE(standby.read_until("standby")) << standby.output();
  head.process.signal(SIGKILL);
  EXPECT_TRUE(standby.read_until("listens")) << standby.output();
  standby.signal(SIGTERM);
  EXPECT_EQ(standby.wait(), 0) << standby.output();
}

TEST_F(HeadLoss, a_standby_elsewhere_takes_over_by_lease) {
  if (!control::EtcdServer::installed()) GTEST_SKIP() << "etcd is not installed (etcd-server)";
  const auto etcd = control::EtcdServer::start();
  ASSERT_TRUE(etcd);
  const auto expected = undisturbed_hash(500);
  const Arguments kept{"--store", etcd->address("test")};
  Head head({}, kept);
  start_nodes(head.address, 2);
  Process standby(
      {"head", "--listen", "127.0.0.1:0", "--store", etcd->address("test"), "--standby"});
  ASSERT_TRUE(standby.read_until("standby")) << standby.output();
  Process submit({"submit", job_file(500), "--head", head.address});
  ASSERT_TRUE(submit.read_until("epoch 3/")) << submit.output();

  const auto killed = std::chrono::steady_clock::now();
  head.process.signal(SIGKILL);
  EXPECT_TRUE(standby.read_until("listens")) << standby.output();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - killed;
  std::printf("the standby leads %.2f s after the head was killed\n", took.count());
  EXPECT_EQ(submit.wait(), 0) << submit.output();
  EXPECT_EQ(hash_in(submit.output()), expected);
}

TEST_F(HeadLoss, a_drained_node_leaves_when_others_have_its_state) {
  const auto expected = undisturbed_hash(500);
  Head head;
  start_nodes(head.address, 1);
  Process submit({"submit", job_file(500), "--head", head.address});
  ASSERT_TRUE(submit.read_until("epoch 3/")) << submit.output();
  // The only one that has the weights goes; they move to one that has just come.
  start_nodes(head.address, 1);
  Process drain({"drain", "node-1", "--head", head.address});
  EXPECT_EQ(drain.wait(), 0) << drain.output();
  EXPECT_EQ(nodes_[0]->wait(), 0) << nodes_[0]->output();
  EXPECT_NE(nodes_[0]->output().find("left the cluster"), std::string::npos) << nodes_[0]->output();
  start_nodes(head.address, 1);
  nodes_[1]->signal(SIGTERM);
  EXPECT_EQ(nodes_[1]->wait(), 0) << nodes_[1]->output();
  EXPECT_EQ(submit.wait(), 0) << submit.output();
  EXPECT_EQ(hash_in(submit.output()), expected);
  Process nobody({"drain", "node-77", "--head", head.address});
  EXPECT_EQ(nobody.wait(), 2) << nobody.output();
  EXPECT_NE(nobody.output().find("no node is called 'node-77'"), std::string::npos)
      << nobody.output();
}

TEST_F(HeadLoss, of_a_whole_cluster_leaves_a_job_that_says_how_far_it_was) {
  auto head = std::make_unique<Head>(Arguments{}, Arguments{"--store", store()});
  const auto address = start_nodes(head->address, 1);
  Process submit({"submit", job_file(100'000), "--head", address});
  ASSERT_TRUE(submit.read_until("step-00000100")) << submit.output();
  head->process.signal(SIGKILL);
  head->process.wait();
  nodes_[0]->signal(SIGKILL);
  nodes_[0]->wait();
  Process next({"head", "--listen", address, "--store", store()});
  EXPECT_EQ(submit.wait(), 3) << submit.output();
  EXPECT_NE(submit.output().find("--resume"), std::string::npos) << submit.output();
  EXPECT_EQ(submit.output().find("stopped after step 0"), std::string::npos) << submit.output();
  // Who asks later is told the same.
  Process later({"status", "--head", address});
  EXPECT_EQ(later.wait(), 0);
  EXPECT_FALSE(std::regex_search(later.output(), std::regex("failed +0/"))) << later.output();
}

TEST_F(HeadLoss, a_job_that_is_interrupted_meanwhile_is_cancelled_at_the_next_head) {
  auto head = std::make_unique<Head>(Arguments{}, Arguments{"--store", store()});
  const auto address = start_nodes(head->address, 1);
  Process submit({"submit", job_file(100'000), "--head", address});
  ASSERT_TRUE(submit.read_until("epoch 3/")) << submit.output();
  head->process.signal(SIGKILL);
  head->process.wait();
  ASSERT_TRUE(submit.read_until("waiting for another head")) << submit.output();
  submit.signal(SIGINT);
  ASSERT_TRUE(submit.read_until("once more to leave it running")) << submit.output();
  Process next({"head", "--listen", address, "--store", store()});
  EXPECT_EQ(submit.wait(), 130) << submit.output();
  EXPECT_NE(submit.output().find("--resume"), std::string::npos) << submit.output();
}

TEST_F(HeadLoss, a_job_that_is_interrupted_as_the_head_dies_is_cancelled_at_the_next_head) {
  auto head = std::make_unique<Head>(Arguments{}, Arguments{"--store", store()});
  const auto address = start_nodes(head->address, 1);
  Process submit({"submit", job_file(100'000), "--head", address});
  ASSERT_TRUE(submit.read_until("epoch 3/")) << submit.output();
  // Told to a head that never reads it.
  head->process.signal(SIGSTOP);
  submit.signal(SIGINT);
  ASSERT_TRUE(takes_signals_soon(submit.pid()));
  head->process.signal(SIGKILL);
  head->process.wait();
  ASSERT_TRUE(submit.read_until("once more to leave it running")) << submit.output();
  Process next({"head", "--listen", address, "--store", store()});
  EXPECT_EQ(submit.wait(), 130) << submit.output();
}

TEST_F(HeadLoss, the_last_node_that_leaves_a_job_leaves_a_checkpoint_that_is_named) {
  Head head;
  Process last({"node", "--head", head.address, "--name", "last", "--drain-timeout", "1"});
  ASSERT_TRUE(last.read_until("joined")) << last.output();
  Process submit({"submit", job_file(100'000), "--head", head.address});
  ASSERT_TRUE(submit.read_until("epoch 3/")) << submit.output();
  last.signal(SIGTERM);
  EXPECT_EQ(last.wait(), 0) << last.output();
  EXPECT_EQ(submit.wait(), 3) << submit.output();
  EXPECT_TRUE(std::regex_search(submit.output(), std::regex("--resume from .*step-[0-9]+")))
      << submit.output();
}

TEST_F(HeadLoss, a_node_ends_when_no_head_comes_in_time) {
  Head head({}, {"--store", store(), "--headless", "1"});
  start_nodes(head.address, 1);
  head.process.signal(SIGKILL);
  EXPECT_EQ(nodes_[0]->wait(), 3) << nodes_[0]->output();
  EXPECT_NE(nodes_[0]->output().find("none took its place"), std::string::npos)
      << nodes_[0]->output();
}

}  // namespace
}  // namespace troupe::tool
