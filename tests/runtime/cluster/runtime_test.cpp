#include "runtime/cluster/runtime.hpp"

#include <cstdint>
#include <future>
#include <random>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/runtime/cluster/cluster_fixture.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(Runtime, starts_a_cluster_of_one) {
  auto head = start_head();
  EXPECT_TRUE(head->is_head());
  EXPECT_TRUE(head->membership_status().ok());
  const View view = head->view();
  EXPECT_EQ(view.generation, 1u);
  EXPECT_EQ(view.head, head->id());
  ASSERT_EQ(view.members.size(), 1u);
  EXPECT_EQ(view.members[0].address, head->address());
  EXPECT_NE(view.members[0].liveness.port, head->address().port);
}

TEST(Runtime, gives_all_nodes_the_same_view) {
  auto head = start_head();
  auto first = join(head->address());
  auto second = join(head->address());
  ViewWatcher head_views(*head);
  ViewWatcher first_views(*first);
  ASSERT_TRUE(head_views.wait_for_size(3));
  ASSERT_TRUE(first_views.wait_for_size(3));
  EXPECT_EQ(head->view(), second->view());
  EXPECT_EQ(first->view(), second->view());
  EXPECT_EQ(second->view().members[1].name, "node");
  EXPECT_EQ(second->view().members[2].name, "node-2");
  EXPECT_TRUE(first->wait_for_nodes(3, 10s).ok());
}

TEST(Runtime, spawns_an_actor_on_another_node_and_talks_to_it) {
  auto head = start_head();
  auto node = join(head->address());
  auto there =
      head->spawn_on(node->id(), "echo", caf::make_message(std::string("node says ")), 10s);
  ASSERT_TRUE(there.ok()) << there.error().message;
  auto back = node->spawn_on(head->id(), "echo", caf::make_message(std::string("head says ")), 10s);
  ASSERT_TRUE(back.ok()) << back.error().message;
  const auto from_node = ask(*head, *there, "yes");
  ASSERT_TRUE(from_node.ok()) << from_node.error().message;
  EXPECT_EQ(*from_node, "node says yes");
  EXPECT_EQ(*ask(*node, *back, "no"), "head says no");
}

TEST(Runtime, spawns_without_waiting) {
  auto head = start_head();
  auto node = join(head->address());
  std::promise<Result<caf::actor>> promise;
  head->spawn_on_async(node->id(), "echo", caf::make_message(std::string("x")), 10s,
                       [&](Result<caf::actor> actor) { promise.set_value(std::move(actor)); });
  const auto actor = promise.get_future().get();
  ASSERT_TRUE(actor.ok()) << actor.error().message;
  EXPECT_EQ(*ask(*head, *actor, "y"), "xy");
}

TEST(Runtime, finds_an_actor_by_name_between_two_nodes_that_are_not_the_head) {
  auto head = start_head();
  auto first = join(head->address());
  auto second = join(head->address());
  const auto actor = second->system().spawn(echo, std::string("second "));
  ASSERT_TRUE(second->register_name("service", actor).ok());
  auto found = first->lookup(second->id(), "service", 10s);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(*ask(*first, *found, "here"), "second here");
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

TEST(Runtime, tells_the_others_who_left) {
  auto head = start_head();
  auto first = join(head->address());
  auto second = join(head->address());
  ViewWatcher head_views(*head);
  ViewWatcher first_views(*first);
  ASSERT_TRUE(first_views.wait_for_size(3));
  const NodeId gone = second->id();
  second->stop();
  EXPECT_EQ(second->membership_status().code(), Code::cancelled);
  ASSERT_TRUE(head_views.wait_for_size(2));
  ASSERT_TRUE(first_views.wait_for_size(2));
  ASSERT_EQ(first_views.departures().size(), 1u);
  EXPECT_EQ(first_views.departures()[0].node, gone);
  EXPECT_EQ(first_views.departures()[0].reason.code, Code::cancelled);
}

TEST(Runtime, tells_nodes_that_the_head_ended_the_cluster) {
  auto head = start_head();
  auto first = join(head->address());
  auto second = join(head->address());
  head->stop();
  ASSERT_TRUE(first->wait_until_out(20s).ok());
  ASSERT_TRUE(second->wait_until_out(20s).ok());
  EXPECT_EQ(first->membership_status().code(), Code::cancelled);
  EXPECT_EQ(first->membership_status().error().message, "the head ended the cluster");
  EXPECT_EQ(first->wait_for_nodes(1, 1s).code(), Code::unavailable);
}

TEST(Runtime, fails_a_request_to_a_node_that_leaves) {
  auto head = start_head();
  auto node = join(head->address());
  auto there = head->spawn_on(node->id(), "echo", caf::make_message(std::string("x")), 10s);
  ASSERT_TRUE(there.ok());
  caf::scoped_actor self(head->system());
  self->monitor(*there);
  node->stop();
  bool down = false;
  self->receive([&](const caf::down_msg&) { down = true; }, caf::after(20s) >> [] {});
  EXPECT_TRUE(down);
}

TEST(Runtime, says_where_no_head_answers_and_what_to_do) {
  // A port that was free a moment ago.
  auto gone = start_head();
  const auto address = gone->address();
  gone->stop();
  const auto node = Runtime::join(address, test_options());
  ASSERT_FALSE(node.ok());
  EXPECT_EQ(node.error().code, Code::unavailable);
  EXPECT_THAT(node.error().message, HasSubstr("no head answers at " + to_string(address) +
                                              "; start one with `troupe head` or check --head"));
}

TEST(Runtime, does_not_wait_longer_than_told_for_a_head_that_says_nothing) {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(::listen(silent, 1), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&at), &size), 0);
  auto options = test_options();
  options.join_timeout = 500ms;
  const auto node = Runtime::join({"127.0.0.1", ntohs(at.sin_port)}, options);
  ::close(silent);
  ASSERT_FALSE(node.ok());
  EXPECT_EQ(node.error().code, Code::deadline_exceeded) << node.error().message;
}

TEST(Runtime, refuses_a_wrong_token) {
  auto options = test_options("head");
  options.token = "right";
  auto head = start_head(options);
  options.token = "wrong";
  const auto node = Runtime::join(head->address(), options);
  ASSERT_FALSE(node.ok());
  EXPECT_EQ(node.error().code, Code::permission_denied) << node.error().message;
  options.token = "right";
  EXPECT_NE(join(head->address(), options), nullptr);
}

TEST(Runtime, says_that_a_port_is_taken) {
  auto head = start_head();
  auto options = test_options("head");
  options.listen = head->address();
  const auto second = Runtime::start_cluster(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::address_in_use);
  EXPECT_THAT(second.error().message, HasSubstr(to_string(head->address())));
}

TEST(Runtime, refuses_options_that_make_no_sense) {
  auto options = test_options();
  options.heartbeat_limit = options.heartbeat_period;
  EXPECT_EQ(Runtime::start_cluster(options).code(), Code::invalid_argument);
  options = test_options();
  options.listen.host = "0.0.0.0";
  options.token = "token";
  EXPECT_EQ(Runtime::start_cluster(options).code(), Code::invalid_argument);
}

TEST(Runtime, says_what_a_program_threw_while_it_was_set_up) {
  auto options = test_options();
  options.configure = [](caf::actor_system_config&) { throw std::runtime_error("no such type"); };
  const auto runtime = Runtime::start_cluster(options);
  ASSERT_FALSE(runtime.ok());
  EXPECT_THAT(runtime.error().message, HasSubstr("no such type"));
  options = test_options();
  options.threads = 100'000;
  EXPECT_EQ(Runtime::start_cluster(options).code(), Code::invalid_argument);
}

TEST(Runtime, ends_the_actors_that_were_spawned_through_it) {
  auto head = start_head();
  auto node = join(head->address());
  for (const NodeId where : {head->id(), node->id()}) {
    ASSERT_TRUE(head->spawn_on(where, "stubborn", {}, 10s).ok());
    ASSERT_TRUE(node->spawn_on(where, "stubborn", {}, 10s).ok());
  }
  node->stop();  // hangs if one of them is left
  head->stop();
}

TEST(Runtime, stops_on_any_thread_while_others_that_used_it_live_on) {
  auto head = start_head();  // this thread made it
  std::promise<void> used, stopped;
  std::thread other([&] {
    {
      caf::scoped_actor self{head->system()};
      self->send(self, 1);
      self->receive([](int) {});
    }
    used.set_value();
    stopped.get_future().wait();
  });
  used.get_future().wait();
  std::thread([&] { head->stop(); }).join();
  stopped.set_value();
  other.join();
}

TEST(Runtime, stops_twice_and_from_two_threads) {
  auto head = start_head();
  auto node = join(head->address());
  std::thread other([&] { node->stop(); });
  node->stop();
  other.join();
  node->stop();
  EXPECT_TRUE(node->wait_until_out(0s).ok());
}

TEST(Runtime, refuses_calls_after_it_was_stopped) {
  auto head = start_head();
  head->stop();
  EXPECT_EQ(head->lookup(head->id(), "x", 1s).code(), Code::failed_precondition);
  EXPECT_EQ(head->spawn_on(head->id(), "echo", {}, 1s).code(), Code::failed_precondition);
  EXPECT_EQ(head->register_name("x", {}).code(), Code::failed_precondition);
  EXPECT_EQ(head->membership_status().code(), Code::cancelled);
}

TEST(Runtime, keeps_its_nodes_while_much_data_moves) {
  auto options = test_options("head");
  options.heartbeat_limit = 500ms;
  auto head = start_head(options);
  auto node = join(head->address());
  auto there = head->spawn_on(node->id(), "echo", caf::make_message(std::string()), 10s);
  ASSERT_TRUE(there.ok()) << there.error().message;
  const std::string bulk(std::size_t{2} << 20, 'x');
  for (int i = 0; i < 20; ++i) {
    const auto answer = ask(*head, *there, bulk);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    ASSERT_EQ(answer->size(), bulk.size());
  }
  EXPECT_EQ(head->view().generation, 2u);
}

TEST(Runtime, does_not_care_in_which_order_a_cluster_is_destroyed) {
  for (const bool head_first : {true, false}) {
    auto head = start_head();
    auto node = join(head->address());
    auto other = join(head->address());
    if (head_first) head.reset();
    other.reset();
    node.reset();
  }
}

TEST(Runtime, does_not_call_a_subscriber_after_it_unsubscribed) {
  auto head = start_head();
  std::atomic<int> calls{0};
  const auto number = head->subscribe([&](const View&, const std::vector<Departure>&) { ++calls; });
  auto node = join(head->address());
  ViewWatcher views(*head);
  ASSERT_TRUE(views.wait_for_size(2));
  head->unsubscribe(number);
  const int before = calls;
  node->stop();
  ASSERT_TRUE(views.wait_for_size(1));
  EXPECT_EQ(calls, before);
}

/// Sends `bytes` to a port and waits until the other side has closed, or for a while.
void throw_at(std::uint16_t port, const std::string& bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::shutdown(fd, SHUT_WR);
  char sink[256];
  while (::recv(fd, sink, sizeof sink, 0) > 0) {
  }
  ::close(fd);
}

TEST(Runtime, takes_no_harm_from_random_bytes_at_its_ports) {
  auto head = start_head();
  auto node = join(head->address());
  std::mt19937_64 random(1);
  for (const auto& member : node->view().members)
    for (const auto port : {member.address.port, member.liveness.port})
      for (int i = 0; i < 20; ++i) {
        std::string bytes(random() % 4096, '\0');
        for (auto& byte : bytes) byte = static_cast<char>(random());
        throw_at(port, bytes);
      }
  auto other = join(head->address());
  ViewWatcher views(*node);
  EXPECT_TRUE(views.wait_for_size(3));
  EXPECT_TRUE(head->membership_status().ok());
  EXPECT_TRUE(node->membership_status().ok());
  auto there = other->spawn_on(node->id(), "echo", caf::make_message(std::string("x")), 10s);
  ASSERT_TRUE(there.ok()) << there.error().message;
  EXPECT_EQ(*ask(*other, *there, "y"), "xy");
}

}  // namespace
}  // namespace troupe
