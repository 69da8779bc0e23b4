// The all-reduce over the real transport: each member is a node of its own, in this process.
#include <memory>
#include <optional>

#include <caf/all.hpp>
#include <gtest/gtest.h>

#include "actors/collective/all_reduce.hpp"
#include "actors/collective/reducer.hpp"
#include "runtime/remoting/caf_error.hpp"
#include "runtime/remoting/remoting.hpp"
#include "runtime/transport/transport.hpp"
#include "tests/actors/collective/simulation.hpp"

namespace troupe::collective {
namespace {

constexpr auto kLimit = std::chrono::seconds(60);

/// A node with a member of the group.
struct Node {
  explicit Node(bool shared_memory) {
    transport::Options wire;
    wire.node = id;
    wire.shared_memory = shared_memory;
    transport = *transport::make_ucx_transport(wire);
    remoting::Options options;
    options.node = id;
    options.configure = [](caf::actor_system_config& config) {
      collective::add_message_types(config);
    };
    remoting = *remoting::make_remoting(options, *transport);
    EXPECT_TRUE(transport->start().ok());
    address = *transport->listen({"127.0.0.1", 0});
    member = spawn_all_reduce(remoting->system());
    EXPECT_TRUE(remoting->register_name("member", member).ok());
  }
  ~Node() { stop(); }
  void stop() {
    if (remoting == nullptr) return;
    caf::anon_send_exit(member, caf::exit_reason::user_shutdown);
    member = nullptr;
    remoting->stop();
    transport->stop();
    remoting.reset();
  }

  NodeId id = NodeId::random();
  transport::Address address;
  std::unique_ptr<transport::Transport> transport;
  std::unique_ptr<remoting::Remoting> remoting;
  caf::actor member;
};

/// With shared memory or without.
class RemoteAllReduceTest : public ::testing::TestWithParam<bool> {
protected:
  void make(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) nodes_.push_back(std::make_unique<Node>(GetParam()));
    std::vector<std::pair<NodeId, transport::Address>> known;
    for (const auto& node : nodes_) known.emplace_back(node->id, node->address);
    for (const auto& node : nodes_)
      node->remoting->set_resolver([known](NodeId id) -> std::optional<transport::Address> {
        for (const auto& [other, address] : known)
          if (other == id) return address;
        return std::nullopt;
      });
    for (std::uint32_t i = 0; i < count; ++i) {
      Group group{{}, i, {}};
      for (const auto& other : nodes_)
        group.members.push_back(other == nodes_[i]
                                    ? other->member
                                    : *nodes_[i]->remoting->lookup(other->id, "member", kLimit));
      caf::anon_send(nodes_[i]->member, group);
    }
  }

  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_P(RemoteAllReduceTest, MembersOnSeveralNodesGetTheSameSumForAnySize) {
  make(3);
  std::mt19937_64 random(21);
  for (const std::size_t count : {1u, 900u, 1024u, 70'000u, 1'500'000u}) {
    std::vector<std::vector<float>> values;
    std::vector<std::unique_ptr<caf::scoped_actor>> askers;
    for (const auto& node : nodes_) {
      values.push_back(draw_values(random, count));
      askers.push_back(std::make_unique<caf::scoped_actor>(node->remoting->system()));
      (*askers.back())->send(node->member, AllReduce{to_buffer(values.back())});
    }
    const auto expected = naive_sum({0, 3}, values);
    for (const auto& asker : askers)
      (*asker)->receive([&](AllReduced& x) { EXPECT_EQ(to_floats(x.sum), expected); },
                        caf::after(kLimit) >> [] { FAIL() << "no sum came"; });
  }
}

TEST_P(RemoteAllReduceTest, TheLossOfANodeFailsTheRequestsOfTheOthers) {
  make(2);
  caf::scoped_actor self(nodes_[0]->remoting->system());
  auto waiting =
      self->request(nodes_[0]->member, kLimit, AllReduce{to_buffer(std::vector<float>{1, 2})});
  nodes_[1]->stop();
  waiting.receive([](AllReduced&) { ADD_FAILURE() << "a sum without the other's values"; },
                  [](caf::error& e) { EXPECT_EQ(remoting::from_caf(e).code, Code::unavailable); });
}

INSTANTIATE_TEST_SUITE_P(Wires, RemoteAllReduceTest, ::testing::Bool(),
                         [](const auto& x) { return x.param ? "SharedMemory" : "Tcp"; });

}  // namespace
}  // namespace troupe::collective
