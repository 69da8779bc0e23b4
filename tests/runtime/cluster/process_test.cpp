// Clusters of several processes, some of which die or stop.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runtime/cluster/cluster_fixture.hpp"
#include "tests/support/child_process.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;
using SteadyTime = std::chrono::steady_clock;

double since(SteadyTime::time_point begin) {
  return std::chrono::duration<double>(SteadyTime::now() - begin).count();
}

using Child = ChildProcess;

/// A node or a head that lives until it is out; it says where it listens, then why it ended.
int child_main(std::string_view what, const char* address) {
  auto options = test_options(std::string(what));
  options.heartbeat_period = 50ms;
  options.heartbeat_limit = 500ms;
  auto runtime = what == "head" ? Runtime::start_cluster(options)
                                : Runtime::join(*transport::Address::parse(address), options);
  if (!runtime.ok()) {
    std::printf("%s\n", runtime.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", to_string((*runtime)->address()).c_str());
  std::fflush(stdout);
  (void)(*runtime)->wait_until_out(60s);
  std::printf("%s\n", (*runtime)->membership_status().ok()
                          ? "still in"
                          : (*runtime)->membership_status().error().message.c_str());
  (*runtime)->stop();
  return 0;
}

RuntimeOptions quick(std::string name) {
  auto options = test_options(std::move(name));
  options.heartbeat_period = 50ms;
  options.heartbeat_limit = 500ms;
  return options;
}

TEST(ClusterOfProcesses, hears_of_a_killed_node_at_once) {
  auto head = start_head(quick("head"));
  auto node = join(head->address(), quick("node"));
  Child victim({"node", to_string(head->address())});
  Child bystander({"node", to_string(head->address())});
  ViewWatcher head_views(*head);
  ViewWatcher node_views(*node);
  ASSERT_TRUE(head_views.wait_for_size(4));
  ASSERT_TRUE(node_views.wait_for_size(4));
  auto actor = node->spawn_on(node->view().members.back().node, "echo",
                              caf::make_message(std::string("x")), 10s);
  ASSERT_TRUE(actor.ok()) << actor.error().message;

  NodeId id;
  for (const auto& member : head->view().members)
    if (member.process == victim.pid()) id = member.node;
  const auto begin = SteadyTime::now();
  victim.signal(SIGKILL);
  const auto gone = [id](const View& view) { return view.find(id) == nullptr; };
  ASSERT_TRUE(head_views.wait_for(gone, 5s));
  const double at_head = since(begin);
  ASSERT_TRUE(node_views.wait_for(gone, 5s));
  fmt::print(
      "a killed node is known to the head after {:.1f} ms, to another node after {:.1f} ms\n",
      at_head * 1e3, since(begin) * 1e3);
  ASSERT_EQ(node_views.departures().size(), 1u);
  EXPECT_EQ(node_views.departures()[0].node, id);
  EXPECT_EQ(node_views.departures()[0].reason.code, Code::unavailable);
  EXPECT_EQ(node->view().members.size(), 3u);
}

TEST(ClusterOfProcesses, fences_a_node_that_was_stopped_for_longer_than_the_limit) {
  auto head = start_head(quick("head"));
  Child victim({"node", to_string(head->address())});
  Child bystander({"node", to_string(head->address())});
  ViewWatcher views(*head);
  ASSERT_TRUE(views.wait_for_size(3));
  ASSERT_FALSE(victim.line().empty());
  const auto begin = SteadyTime::now();
  victim.signal(SIGSTOP);
  ASSERT_TRUE(views.wait_for_size(2));
  fmt::print("a stopped node is out after {:.0f} ms, with a limit of 500 ms\n", since(begin) * 1e3);
  ASSERT_EQ(views.departures().size(), 1u);
  EXPECT_THAT(views.departures()[0].reason.message, HasSubstr("not heard of"));
  victim.signal(SIGCONT);
  EXPECT_THAT(victim.line(), HasSubstr("this node was put out of the cluster"));
  EXPECT_EQ(victim.wait(), 0);
  // The place is free for a new one.
  auto again = join(head->address(), quick("node"));
  EXPECT_TRUE(views.wait_for_size(3));
}

TEST(ClusterOfProcesses, knows_that_its_head_was_killed) {
  Child head({"head", "-"});
  const auto address = transport::Address::parse(head.line());
  ASSERT_TRUE(address.ok());
  auto node = join(*address, quick("node"));
  Child other({"node", to_string(*address)});
  ASSERT_FALSE(other.line().empty());
  const auto begin = SteadyTime::now();
  head.signal(SIGKILL);
  ASSERT_TRUE(node->wait_until_out(5s).ok());
  fmt::print("a killed head is missed after {:.1f} ms\n", since(begin) * 1e3);
  EXPECT_EQ(node->membership_status().code(), Code::unavailable);
  EXPECT_THAT(node->membership_status().error().message, HasSubstr("is lost"));
  EXPECT_THAT(other.line(), HasSubstr("is lost"));
}

TEST(ClusterOfProcesses, ends_all_nodes_in_order_when_the_head_stops) {
  auto head = start_head(quick("head"));
  Child first({"node", to_string(head->address())});
  Child second({"node", to_string(head->address())});
  ASSERT_TRUE(head->wait_for_nodes(3, 20s).ok());
  ASSERT_FALSE(first.line().empty());
  ASSERT_FALSE(second.line().empty());
  head->stop();
  EXPECT_EQ(first.line(), "the head ended the cluster");
  EXPECT_EQ(second.line(), "the head ended the cluster");
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--child")
    return troupe::child_main(argv[2], argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
