#include "runtime/membership/node_machine.hpp"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/membership/machine_fixture.hpp"

namespace troupe::membership {
namespace {

using testing::HasSubstr;

// Node 1 is the head, 2 another member, 3 this one. Links are numbered by who is at the other end.
class NodeMachineTest : public testing::Test {
protected:
  NodeMachineTest() : node_({member(3), {"127.0.0.1", 4001}, kTiming, 10s}, now_) {}

  static SharedView view(std::uint64_t generation, std::vector<std::uint64_t> numbers) {
    View v{generation, node_id(1), {}};
    for (const auto number : numbers) v.members.push_back(member(number));
    return std::make_shared<const View>(std::move(v));
  }
  static Amended amended(Amendment amendment) {
    return {std::make_shared<const Amendment>(std::move(amendment))};
  }
  std::vector<Action> connect(const Connect& wanted, std::uint64_t number) {
    const Link link{wanted.plane, number};
    node_.connected(link, node_id(number), now_);
    node_.connect_done(wanted.id, link, now_);
    return node_.take_actions();
  }
  std::vector<Action> receive(const Message& message) {
    node_.received(liveness_link(1), message, now_);
    return node_.take_actions();
  }
  std::vector<Action> welcome() {
    const auto connects = only<Connect>(node_.take_actions());
    connect(connects.at(0), 1);
    node_.received(actors_link(1), Welcome{member(3, "node-2"), {member(1), member(2)}, kTiming},
                   now_);
    return node_.take_actions();
  }
  void bring_in() {
    for (const auto& wanted : only<Connect>(welcome()))
      connect(wanted, wanted.plane == Plane::liveness ? 1 : 2);
    receive(Joined{view(5, {1, 2, 3})});
    ASSERT_NE(node_.view(), nullptr);
  }
  std::vector<Action> pass(Duration time, bool head_answers = false) {
    std::vector<Action> all;
    for (const TimePoint until = now_ + time; now_ < until;) {
      now_ += kTiming.period;
      if (head_answers) node_.received(liveness_link(1), Heartbeat{}, now_);
      node_.tick(now_);
      for (auto& action : node_.take_actions()) all.push_back(std::move(action));
    }
    return all;
  }
  static Error out(const std::vector<Action>& actions) {
    const auto outs = only<Out>(actions);
    EXPECT_EQ(outs.size(), 1u);
    return outs.empty() ? Error{} : outs[0].reason;
  }

  TimePoint now_{1h};
  NodeMachine node_;
};

TEST_F(NodeMachineTest, asks_the_head_once_it_is_connected) {
  const auto connects = only<Connect>(node_.take_actions());
  ASSERT_EQ(connects.size(), 1u);
  EXPECT_EQ(connects[0].address.port, 4001);
  EXPECT_EQ(sent<Join>(connect(connects[0], 1), actors_link(1)).size(), 1u);
}

TEST_F(NodeMachineTest, connects_to_all_earlier_ones_and_then_says_so) {
  const auto connects = only<Connect>(welcome());
  ASSERT_EQ(connects.size(), 2u);
  EXPECT_EQ(connects[0].plane, Plane::liveness);
  EXPECT_EQ(connects[0].address.port, 5001);
  EXPECT_EQ(connects[1].address.port, 4002);
  EXPECT_TRUE(sent<Mesh>(connect(connects[1], 2), liveness_link(1)).empty());
  EXPECT_EQ(sent<Mesh>(connect(connects[0], 1), liveness_link(1)).size(), 1u);
  EXPECT_EQ(only<NewView>(receive(Joined{view(5, {1, 2, 3})})).size(), 1u);
}

TEST_F(NodeMachineTest, names_address_and_remedy_when_no_head_answers) {
  const auto connects = only<Connect>(node_.take_actions());
  node_.connect_done(connects[0].id, Error{Code::unavailable, "connection refused"}, now_);
  const auto error = out(node_.take_actions());
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_EQ(error.message,
            "no head answers at 127.0.0.1:4001; start one with `troupe head` or check --head "
            "(connection refused)");
}

TEST_F(NodeMachineTest, tries_the_other_addresses_where_one_is_wrong) {
  NodeMachine::Options options{member(3), {"nowhere", 4001}, kTiming, 10s};
  options.other_heads = {{"127.0.0.1", 4002}};
  NodeMachine node(options, now_);
  const auto first = only<Connect>(node.take_actions());
  node.connect_done(first.at(0).id, Error{Code::invalid_argument, "cannot be resolved"}, now_);
  EXPECT_TRUE(only<Out>(node.take_actions()).empty());
  std::vector<Connect> second;
  for (int i = 0; i < 10 && second.empty(); ++i) {
    now_ += 200ms;
    node.tick(now_);
    second = only<Connect>(node.take_actions());
  }
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].address.port, 4002);
  node.connect_done(second[0].id, Error{Code::invalid_argument, "not that either"}, now_);
  EXPECT_EQ(out(node.take_actions()).message, "not that either");
}

TEST_F(NodeMachineTest, gives_up_joining_at_the_deadline_and_says_what_it_waited_for) {
  const auto connects = only<Connect>(welcome());
  connect(connects[0], 1);
  node_.connect_done(connects[1].id, Error{Code::unavailable, "no route"}, now_);
  const auto error = out(pass(10s, true));
  EXPECT_EQ(error.code, Code::deadline_exceeded);
  EXPECT_THAT(error.message, HasSubstr("cannot connect to node at 127.0.0.1:4002 within 10 s"));
}

TEST_F(NodeMachineTest, tries_a_member_again_that_did_not_answer) {
  const auto connects = only<Connect>(welcome());
  connect(connects[0], 1);
  node_.connect_done(connects[1].id, Error{Code::unavailable, "refused"}, now_);
  const auto again = only<Connect>(pass(300ms, true));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].address.port, 4002);
}

TEST_F(NodeMachineTest, does_not_take_another_node_at_a_members_address) {
  const auto connects = only<Connect>(welcome());
  connect(connects[0], 1);
  const auto actions = connect(connects[1], 9);
  EXPECT_TRUE(closes(actions, actors_link(9)));
  EXPECT_TRUE(sent<Mesh>(actions, liveness_link(1)).empty());
}

TEST_F(NodeMachineTest, needs_no_connection_to_one_that_the_head_says_is_gone) {
  const auto connects = only<Connect>(welcome());
  connect(connects[0], 1);
  EXPECT_EQ(sent<Mesh>(receive(Forget{node_id(2)}), liveness_link(1)).size(), 1u);
}

TEST_F(NodeMachineTest, is_refused_with_the_heads_sentence) {
  connect(only<Connect>(node_.take_actions())[0], 1);
  node_.received(actors_link(1), Refused{{Code::version_mismatch, "too old"}}, now_);
  const auto error = out(node_.take_actions());
  EXPECT_EQ(error.code, Code::version_mismatch);
  EXPECT_EQ(error.message, "the head at 127.0.0.1:4001 refused this node: too old");
}

TEST_F(NodeMachineTest, sends_heartbeats_each_period) {
  bring_in();
  EXPECT_EQ(sent<Heartbeat>(pass(1s, true), liveness_link(1)).size(), 10u);
}

TEST_F(NodeMachineTest, drops_a_view_that_is_not_newer) {
  bring_in();
  EXPECT_TRUE(only<NewView>(receive(ViewChanged{view(5, {1, 3}), {}})).empty());
  EXPECT_TRUE(only<NewView>(receive(ViewChanged{view(4, {1, 3}), {}})).empty());
  EXPECT_EQ(node_.view()->members.size(), 3u);
}

TEST_F(NodeMachineTest, closes_what_leads_to_those_who_are_gone_and_reports_them) {
  bring_in();
  const auto actions = receive(ViewChanged{view(6, {1, 3}), {}});
  EXPECT_TRUE(closes(actions, actors_link(2)));
  const auto views = only<NewView>(actions);
  ASSERT_EQ(views.size(), 1u);
  ASSERT_EQ(views[0].departures.size(), 1u);
  EXPECT_EQ(views[0].departures[0].node, node_id(2));
}

TEST_F(NodeMachineTest, makes_the_next_view_out_of_what_has_changed) {
  bring_in();
  const Departure gone{node_id(2), "node", {Code::unavailable, "reset"}};
  Member drained = member(3);
  drained.draining = true;
  const auto views = only<NewView>(receive(amended({6, {drained, member(4)}, {gone}, 3})));
  ASSERT_EQ(views.size(), 1u);
  View expected = *view(6, {1, 3, 4});
  expected.members[1].draining = true;
  EXPECT_EQ(*views[0].view, expected);
  EXPECT_EQ(views[0].departures.size(), 1u);
  EXPECT_TRUE(only<NewView>(receive(amended({6, {}, {}, 3}))).empty());
}

class OddAmendment : public NodeMachineTest, public testing::WithParamInterface<Amendment> {};

TEST_P(OddAmendment, ends_the_node_rather_than_being_guessed_at) {
  bring_in();
  EXPECT_EQ(out(receive(amended(GetParam()))).code, Code::protocol_error);
}

const Departure kStranger{node_id(9), "node", {Code::unavailable, "reset"}};
INSTANTIATE_TEST_SUITE_P(NodeMachineTest, OddAmendment,
                         testing::Values(Amendment{7, {}, {}, 3}, Amendment{6, {}, {}, 4},
                                         Amendment{6, {}, {kStranger}, 3},
                                         Amendment{6, {member(2)}, {}, 4}));

TEST_F(NodeMachineTest, reports_a_member_whose_connection_broke) {
  bring_in();
  node_.lost(actors_link(2), {Code::unavailable, "reset"}, now_);
  const auto suspects = sent<Suspect>(node_.take_actions(), liveness_link(1));
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].node, node_id(2));
}

TEST_F(NodeMachineTest, reports_a_member_that_never_connected) {
  bring_in();
  receive(ViewChanged{view(6, {1, 2, 3, 4}), {}});
  const auto suspects = sent<Suspect>(pass(kTiming.limit, true), liveness_link(1));
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].node, node_id(4));
}

TEST_F(NodeMachineTest, stops_at_once_when_it_is_fenced) {
  bring_in();
  const auto actions = receive(Fenced{{Code::unavailable, "silent for too long"}});
  EXPECT_EQ(out(actions).message, "silent for too long");
  EXPECT_TRUE(closes(actions, actors_link(2)));
  EXPECT_TRUE(closes(actions, actors_link(1)));
  EXPECT_TRUE(pass(5s).empty());
}

TEST_F(NodeMachineTest, counts_a_view_without_itself_as_being_put_out) {
  bring_in();
  EXPECT_EQ(out(receive(ViewChanged{view(6, {1, 2}), {}})).code, Code::stale_generation);
}

TEST_F(NodeMachineTest, knows_that_its_head_is_lost_when_both_connections_broke) {
  bring_in();
  node_.lost(actors_link(1), {Code::unavailable, "reset by peer"}, now_);
  EXPECT_TRUE(only<Out>(node_.take_actions()).empty());
  node_.lost(liveness_link(1), {Code::unavailable, "reset"}, now_);
  const auto error = out(node_.take_actions());
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_THAT(error.message, HasSubstr("the head at 127.0.0.1:4001 is lost (reset by peer)"));
}

TEST_F(NodeMachineTest, believes_the_heads_word_before_a_broken_connection) {
  bring_in();
  node_.lost(actors_link(1), {Code::unavailable, "reset"}, now_);
  EXPECT_EQ(out(receive(Ended{{Code::cancelled, "the head ended the cluster"}})).code,
            Code::cancelled);
}

TEST_F(NodeMachineTest, knows_that_its_head_is_lost_after_a_limit_of_silence) {
  bring_in();
  EXPECT_TRUE(only<Out>(pass(kTiming.limit)).empty());
  EXPECT_THAT(out(pass(kTiming.period)).message, HasSubstr("nothing heard of it for 1.1 s"));
}

TEST_F(NodeMachineTest, waits_for_the_heads_word_after_it_was_paused_itself) {
  bring_in();
  now_ += 1h;
  node_.tick(now_);
  EXPECT_TRUE(only<Out>(node_.take_actions()).empty());
  EXPECT_EQ(out(receive(Fenced{{Code::unavailable, "silent for an hour"}})).message,
            "silent for an hour");
}

TEST_F(NodeMachineTest, leaves_in_order) {
  bring_in();
  node_.leave(now_);
  EXPECT_EQ(sent<Leave>(node_.take_actions(), liveness_link(1)).size(), 1u);
  receive(ViewChanged{view(6, {1, 2}), {}});
  EXPECT_EQ(out(receive(Released{})).code, Code::cancelled);
}

TEST_F(NodeMachineTest, leaves_without_an_answer_after_the_limit) {
  bring_in();
  node_.leave(now_);
  EXPECT_EQ(out(pass(kTiming.limit)).code, Code::cancelled);
}

TEST_F(NodeMachineTest, closes_a_peer_that_plays_the_head) {
  bring_in();
  node_.received(actors_link(2), Released{}, now_);
  const auto actions = node_.take_actions();
  EXPECT_TRUE(closes(actions, actors_link(2)));
  EXPECT_TRUE(only<Out>(actions).empty());
}

TEST_F(NodeMachineTest, does_not_follow_a_head_that_breaks_the_protocol) {
  bring_in();
  EXPECT_EQ(out(receive(ViewChanged{view(6, {1, 2, 3, 3}), {}})).code, Code::protocol_error);
}

}  // namespace
}  // namespace troupe::membership
