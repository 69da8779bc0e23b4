// The command on hosts that are network namespaces: a network breaks, not a process, and no FIN or
// RST tells anybody.
#include <cstdio>
#include <map>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/actors/job/synthetic_job.hpp"
#include "tests/tools/network.hpp"

namespace troupe::tool {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;
using testing::HasSubstr;
using train::TemporaryFolder;

constexpr const char* kJob = TROUPE_EXAMPLES "/mnist/lenet.toml";
constexpr const char* kEpochs = "job.epochs=12";

/// What the command says, without the lines of single steps.
std::string notices(const Process& process) {
  return std::regex_replace(process.output(), std::regex("epoch [^\n]* step [^\n]*\n"), "");
}

/// Of the same job on loopback.
const std::string& undisturbed_hash() {
  static const std::string hash = [] {
    TemporaryFolder folder;
    Process train({"train", kJob, "--nodes", "2", "--set", kEpochs, "--set",
                   "checkpoint.directory=" + folder.path().string()});
    EXPECT_EQ(train.wait(), 0) << train.output();
    return hash_in(train.output());
  }();
  return hash;
}

/// A head on host 1, nodes on 2, 3 and 4, and a job on all three that has begun.
class Netns : public testing::Test {
protected:
  void SetUp() override {
    if (!network_.missing().empty()) GTEST_SKIP() << network_.missing();
    head_ = start(1, {"head", "--listen", head_address_});
    ASSERT_TRUE(head_->read_until("nodes join")) << head_->output();
    for (int host : {2, 3, 4}) {
      const auto name = "host-" + std::to_string(host);
      start_node(host, {"--name", name, "--listen", Network::address(host) + ":0"});
    }
    for (const auto& [host, node] : nodes_)
      ASSERT_TRUE(node->read_until("joined")) << node->output();
    job_ = start(
        1, {"submit", kJob, "--head", head_address_, "--set", kEpochs, "--set",
            "operation.log_every=1", "--set", "checkpoint.directory=" + folder_.path().string()});
    ASSERT_TRUE(job_->read_until("on 3 nodes")) << notices(*job_);
    ASSERT_TRUE(job_->read_until("epoch 2/12  step")) << notices(*job_);
  }

  std::unique_ptr<Process> start(int host, std::vector<std::string> arguments) const {
    return network_.start(host, std::move(arguments), {"TROUPE_TOKEN=secret"});
  }
  void start_node(int host, const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"node", "--head", head_address_};
    arguments.insert(arguments.end(), options.begin(), options.end());
    nodes_[host] = start(host, arguments);
  }

  /// Waits until the job has changed to `nodes` because of `what`, and has finished a step there.
  /// Says how long that took since `begin`, which is when it was disturbed.
  void expect_steps_on(int nodes, const std::string& what, Clock::time_point begin) {
    const auto from = job_->output().size();
    const std::string change = " on " + std::to_string(nodes) + " node";
    ASSERT_TRUE(job_->read_until([&](const std::string& all) {
      const auto at = all.find(change, from);
      return at != std::string::npos && all.find(" step ", at + change.size()) != std::string::npos;
    })) << notices(*job_);
    const std::chrono::duration<double> took = Clock::now() - begin;
    std::printf("%s: the next step is finished after %.3f s\n", what.c_str(), took.count());
    EXPECT_LT(took, seconds(10));
    EXPECT_THAT(job_->output().substr(from), HasSubstr(what));
  }
  void expect_undisturbed_weights() {
    if (HasFatalFailure()) return;
    EXPECT_EQ(job_->wait(seconds(60)), 0) << notices(*job_);
    EXPECT_EQ(undisturbed_hash().size(), 64u);
    EXPECT_EQ(hash_in(job_->output()), undisturbed_hash()) << notices(*job_);
  }
  /// A node that was cut off or put out ends on its own.
  void expect_out(int host, const std::string& why) {
    EXPECT_EQ(nodes_[host]->wait(seconds(20)), 3) << nodes_[host]->output();
    EXPECT_THAT(nodes_[host]->output(), HasSubstr(why));
  }

  const std::string head_address_ = Network::address(1) + ":7077";
  TemporaryFolder folder_;
  Network network_{4};
  std::unique_ptr<Process> head_;
  std::map<int, std::unique_ptr<Process>> nodes_;  ///< by host
  std::unique_ptr<Process> job_;
};

TEST_F(Netns, a_job_over_four_hosts_ends_in_the_weights_of_one_host) {
  expect_undisturbed_weights();
}

TEST_F(Netns, a_node_whose_cable_is_pulled_is_out_and_another_on_its_host_joins_the_job) {
  const auto begin = Clock::now();
  network_.unplug(3);
  expect_steps_on(2, "'host-3'", begin);
  expect_out(3, "nothing heard of it for");
  network_.plug(3);
  const auto again = Clock::now();
  start_node(3, {"--name", "again"});  // listens where it reaches the head
  expect_steps_on(3, "'again'", again);
  expect_undisturbed_weights();
}

TEST_F(Netns, a_node_that_nobody_hears_is_out) {
  const auto begin = Clock::now();
  for (int host : {1, 2, 4}) network_.drop(3, host);
  expect_steps_on(2, "'host-3'", begin);
  // Told by the head, whom it hears, or first to miss the answers to its heartbeats.
  expect_out(3, "heard of ");
  expect_undisturbed_weights();
}

TEST_F(Netns, a_node_that_hears_nobody_goes_by_itself) {
  const auto begin = Clock::now();
  for (int host : {1, 2, 4}) network_.drop(host, 3);
  expect_steps_on(2, "'host-3'", begin);
  expect_out(3, "nothing heard of it for");
  expect_undisturbed_weights();
}

TEST_F(Netns, a_job_goes_on_without_a_host_that_is_gone_at_once) {
  const auto begin = Clock::now();
  network_.link_down(3);
  nodes_[3]->signal(SIGKILL);
  expect_steps_on(2, "'host-3'", begin);
  expect_undisturbed_weights();
}

TEST_F(Netns, of_two_nodes_that_cannot_reach_each_other_one_goes) {
  const auto begin = Clock::now();
  network_.drop(3, 4);
  network_.drop(4, 3);
  expect_steps_on(2, "has no connection to", begin);
  expect_undisturbed_weights();
}

}  // namespace
}  // namespace troupe::tool
