#include "runtime/membership/head_machine.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/membership/machine_fixture.hpp"

namespace troupe::membership {
namespace {

using testing::HasSubstr;

class HeadMachineTest : public testing::Test {
protected:
  HeadMachineTest() : head_({member(1, "head"), kTiming, 16}, now_) { head_.take_actions(); }

  /// What the head wants after node `number` has connected and asked.
  std::vector<Action> ask(std::uint64_t number, Join join) {
    head_.connected(actors_link(number), node_id(number), now_);
    head_.received(actors_link(number), join, now_);
    return head_.take_actions();
  }
  std::vector<Action> ask(std::uint64_t number, std::string name = "node") {
    return ask(number, Join{kProtocol, member(number, std::move(name))});
  }
  std::vector<Action> mesh(std::uint64_t number) {
    head_.connected(liveness_link(number), node_id(number), now_);
    return receive(number, Mesh{});
  }
  std::vector<Action> receive(std::uint64_t number, const Message& message) {
    head_.received(liveness_link(number), message, now_);
    return head_.take_actions();
  }
  void bring_in(std::uint64_t number) {
    ask(number);
    mesh(number);
    ASSERT_NE(head_.view()->find(node_id(number)), nullptr);
  }
  /// Lets time pass in periods; the nodes of `beating` send heartbeats.
  std::vector<Action> pass(Duration time, std::vector<std::uint64_t> beating = {}) {
    std::vector<Action> all;
    for (const TimePoint until = now_ + time; now_ < until;) {
      now_ += kTiming.period;
      for (const auto number : beating)
        head_.received(liveness_link(number), Heartbeat{1, 1}, now_);
      head_.tick(now_);
      for (auto& action : head_.take_actions()) all.push_back(std::move(action));
    }
    return all;
  }
  std::string refusal(const std::vector<Action>& actions, std::uint64_t number) {
    const auto refused = sent<Refused>(actions, actors_link(number));
    EXPECT_EQ(refused.size(), 1u);
    EXPECT_TRUE(closes(actions, actors_link(number)));
    return refused.empty() ? "" : refused[0].reason.message;
  }

  TimePoint now_{1h};
  HeadMachine head_;
};

TEST_F(HeadMachineTest, begins_with_itself_as_generation_one) {
  EXPECT_EQ(head_.view()->generation, 1u);
  EXPECT_EQ(head_.view()->members.size(), 1u);
  EXPECT_EQ(head_.view()->head, node_id(1));
}

TEST_F(HeadMachineTest, lets_a_node_in_only_when_it_is_connected_to_all) {
  const auto asked = ask(2);
  const auto welcome = sent<Welcome>(asked, actors_link(2));
  ASSERT_EQ(welcome.size(), 1u);
  EXPECT_EQ(welcome[0].earlier.size(), 1u);
  EXPECT_EQ(welcome[0].timing.limit, kTiming.limit);
  EXPECT_EQ(head_.view()->generation, 1u);

  const auto meshed = mesh(2);
  EXPECT_EQ(head_.view()->generation, 2u);
  EXPECT_EQ(sent<Joined>(meshed, liveness_link(2)).size(), 1u);
  EXPECT_EQ(only<NewView>(meshed).size(), 1u);
  EXPECT_EQ(head_.view()->members[1].joined, 2u);
}

TEST_F(HeadMachineTest, tells_members_of_a_new_one_and_a_new_one_of_all_before_it) {
  bring_in(2);
  ask(3);
  const auto asked = ask(4);
  EXPECT_EQ(sent<Welcome>(asked, actors_link(4))[0].earlier.size(), 3u);
  const auto meshed = mesh(4);  // before 3
  EXPECT_EQ(sent<Amended>(meshed, liveness_link(2)).size(), 1u);
  EXPECT_EQ(sent<Amended>(meshed, actors_link(3)).size(), 0u);
  const auto last = mesh(3);
  EXPECT_EQ(sent<Amended>(last, liveness_link(4)).size(), 1u);
  EXPECT_EQ(head_.view()->members.size(), 4u);
}

TEST_F(HeadMachineTest, gives_each_member_a_name_of_its_own) {
  EXPECT_EQ(sent<Welcome>(ask(2), actors_link(2))[0].you.name, "node");
  EXPECT_EQ(sent<Welcome>(ask(3), actors_link(3))[0].you.name, "node-2");
  EXPECT_EQ(sent<Welcome>(ask(4), actors_link(4))[0].you.name, "node-3");
  EXPECT_EQ(sent<Welcome>(ask(5, "head"), actors_link(5))[0].you.name, "head-2");
}

TEST_F(HeadMachineTest, refuses_another_protocol_and_shows_both_versions) {
  const auto text = refusal(ask(2, Join{kProtocol + 1, member(2)}), 2);
  EXPECT_THAT(text, HasSubstr(fmt::format("membership protocol {}, the head {}", kProtocol + 1,
                                          kProtocol)));
}

TEST_F(HeadMachineTest, refuses_an_id_that_is_in_already_and_keeps_the_first) {
  bring_in(2);
  head_.connected({Plane::actors, 77}, node_id(2), now_);
  head_.received({Plane::actors, 77}, Join{kProtocol, member(2)}, now_);
  EXPECT_THAT(refusal(head_.take_actions(), 77), HasSubstr("is in the cluster already"));
  head_.lost({Plane::actors, 77}, {Code::cancelled, "closed"}, now_);
  EXPECT_EQ(head_.view()->members.size(), 2u);
}

TEST_F(HeadMachineTest, refuses_who_says_to_be_another_than_it_proved_to_be) {
  EXPECT_THAT(refusal(ask(2, Join{kProtocol, member(3)}), 2), HasSubstr("asked to join as"));
}

TEST_F(HeadMachineTest, refuses_a_node_that_listens_nowhere) {
  Member m = member(2);
  m.liveness.port = 0;
  EXPECT_THAT(refusal(ask(2, Join{kProtocol, m}), 2), HasSubstr("where it listens"));
}

TEST_F(HeadMachineTest, refuses_more_than_it_has_room_for) {
  for (std::uint64_t n = 2; n <= 16; ++n) ask(n);
  EXPECT_THAT(refusal(ask(17), 17), HasSubstr("16 nodes"));
}

TEST_F(HeadMachineTest, puts_a_node_out_when_its_connection_breaks) {
  bring_in(2);
  bring_in(3);
  head_.lost(actors_link(2), {Code::unavailable, "connection reset"}, now_);
  const auto actions = head_.take_actions();
  EXPECT_EQ(head_.view()->generation, 4u);
  const auto changed = sent<Amended>(actions, liveness_link(3));
  ASSERT_EQ(changed.size(), 1u);
  const Amendment& amendment = *changed[0].amendment;
  EXPECT_EQ(amendment.generation, 4u);
  EXPECT_EQ(amendment.members, 2u);
  ASSERT_EQ(amendment.departures.size(), 1u);
  EXPECT_EQ(amendment.departures[0].reason.code, Code::unavailable);
  EXPECT_THAT(amendment.departures[0].reason.message, HasSubstr("connection reset"));
  EXPECT_EQ(sent<Fenced>(actions, liveness_link(2)).size(), 1u);
}

TEST_F(HeadMachineTest, gives_whole_views_only_to_those_who_may_lack_the_one_before) {
  const View last{7, node_id(9), {member(9), member(2), member(3)}};
  HeadMachine next({member(1), kTiming, 16, 2, std::make_shared<const View>(last)}, now_);
  for (const auto& connect : only<Connect>(next.take_actions())) {
    const std::uint64_t number = connect.address.port % 1000;
    const Link link{connect.plane, number};
    next.connected(link, node_id(number), now_);
    next.connect_done(connect.id, link, now_);
    if (connect.plane == Plane::liveness) next.received(link, Followed{2, nullptr}, now_);
  }
  const auto taken_over = next.take_actions();
  EXPECT_EQ(sent<ViewChanged>(taken_over, liveness_link(3)).size(), 1u);
  EXPECT_EQ(sent<Amended>(taken_over, liveness_link(3)).size(), 0u);
  next.lost(actors_link(2), {Code::unavailable, "connection reset"}, now_);
  const auto lost = next.take_actions();
  EXPECT_EQ(sent<ViewChanged>(lost, liveness_link(3)).size(), 0u);
  EXPECT_EQ(sent<Amended>(lost, liveness_link(3)).size(), 1u);
}

TEST_F(HeadMachineTest, puts_a_node_out_when_its_process_ends) {
  bring_in(2);
  head_.process_ended(node_id(2), now_);
  EXPECT_EQ(head_.view()->find(node_id(2)), nullptr);
}

TEST_F(HeadMachineTest, puts_a_silent_node_out_after_the_limit_and_not_before) {
  bring_in(2);
  bring_in(3);
  pass(kTiming.limit, {3});
  EXPECT_NE(head_.view()->find(node_id(2)), nullptr);
  const auto actions = pass(kTiming.period, {3});
  EXPECT_EQ(head_.view()->find(node_id(2)), nullptr);
  EXPECT_NE(head_.view()->find(node_id(3)), nullptr);
  EXPECT_THAT(only<NewView>(actions)[0].departures[0].reason.message,
              HasSubstr("not heard of for 1.1 s"));
}

TEST_F(HeadMachineTest, puts_several_out_in_one_generation) {
  bring_in(2);
  bring_in(3);
  pass(kTiming.limit + kTiming.period);
  EXPECT_EQ(head_.view()->generation, 4u);
  EXPECT_EQ(head_.view()->members.size(), 1u);
}

TEST_F(HeadMachineTest, tells_a_node_that_was_put_out_and_talks_again) {
  bring_in(2);
  pass(2s);
  const auto actions = receive(2, Heartbeat{2, 9});
  ASSERT_EQ(sent<Fenced>(actions, liveness_link(2)).size(), 1u);
  EXPECT_TRUE(closes(actions, liveness_link(2)));
  EXPECT_THAT(sent<Fenced>(actions, liveness_link(2))[0].reason.message,
              HasSubstr("put out of the cluster after generation 2"));
}

TEST_F(HeadMachineTest, takes_a_node_that_was_put_out_under_a_new_id_only) {
  bring_in(2);
  pass(2s);
  head_.connected({Plane::actors, 50}, node_id(2), now_);
  head_.received({Plane::actors, 50}, Join{kProtocol, member(2)}, now_);
  EXPECT_THAT(refusal(head_.take_actions(), 50), HasSubstr("draws a new id"));
  bring_in(3);
}

TEST_F(HeadMachineTest, holds_its_own_pause_against_nobody) {
  bring_in(2);
  now_ += 1h;
  head_.tick(now_);
  EXPECT_NE(head_.view()->find(node_id(2)), nullptr);
  pass(2s);
  EXPECT_EQ(head_.view()->find(node_id(2)), nullptr);
}

TEST_F(HeadMachineTest, answers_heartbeats) {
  bring_in(2);
  const auto answers = sent<Heartbeat>(receive(2, Heartbeat{2, 5}), liveness_link(2));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].sequence, 5u);
}

TEST_F(HeadMachineTest, lets_a_node_go_that_asks) {
  bring_in(2);
  bring_in(3);
  const auto actions = receive(2, Leave{});
  EXPECT_EQ(sent<Released>(actions, liveness_link(2)).size(), 1u);
  const auto changed = sent<Amended>(actions, liveness_link(3));
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].amendment->departures[0].reason.code, Code::cancelled);
}

TEST_F(HeadMachineTest, puts_out_the_younger_of_two_that_lost_their_connection) {
  bring_in(2);
  bring_in(3);
  receive(2, Suspect{node_id(3), {Code::unavailable, "reset"}});
  pass(kTiming.limit - kTiming.period, {2, 3});
  EXPECT_EQ(head_.view()->members.size(), 3u);
  pass(kTiming.period, {2, 3});
  EXPECT_NE(head_.view()->find(node_id(2)), nullptr);
  EXPECT_EQ(head_.view()->find(node_id(3)), nullptr);
}

TEST_F(HeadMachineTest, puts_out_the_one_that_lost_several_rather_than_each_of_those) {
  for (std::uint64_t n = 2; n <= 4; ++n) bring_in(n);
  receive(2, Suspect{node_id(3), {Code::unavailable, "reset"}});
  receive(4, Suspect{node_id(2), {Code::unavailable, "reset"}});
  pass(kTiming.limit, {2, 3, 4});
  EXPECT_EQ(head_.view()->find(node_id(2)), nullptr);
  EXPECT_EQ(head_.view()->members.size(), 3u);
}

TEST_F(HeadMachineTest, ignores_a_suspicion_of_itself_and_of_strangers) {
  bring_in(2);
  receive(2, Suspect{node_id(1), {}});
  receive(2, Suspect{node_id(2), {}});
  receive(2, Suspect{node_id(99), {}});
  pass(3s, {2});
  EXPECT_EQ(head_.view()->generation, 2u);
}

TEST_F(HeadMachineTest, tells_candidates_to_forget_who_went) {
  bring_in(2);
  ask(3);
  head_.lost(actors_link(2), {Code::unavailable, "reset"}, now_);
  EXPECT_EQ(sent<Forget>(head_.take_actions(), actors_link(3)).size(), 1u);
}

TEST_F(HeadMachineTest, drops_a_candidate_that_goes_silent) {
  ask(2);
  const auto actions = pass(6s);
  EXPECT_TRUE(closes(actions, actors_link(2)));
  EXPECT_EQ(head_.view()->generation, 1u);
}

TEST_F(HeadMachineTest, puts_out_a_member_that_breaks_the_protocol_and_says_what) {
  bring_in(2);
  head_.malformed(liveness_link(2), {Code::protocol_error, "bytes of nothing"}, now_);
  const auto fenced = sent<Fenced>(head_.take_actions(), liveness_link(2));
  ASSERT_EQ(fenced.size(), 1u);
  EXPECT_THAT(fenced[0].reason.message, HasSubstr("bytes of nothing"));
  bring_in(3);
  const auto actions = receive(3, Released{});
  EXPECT_THAT(sent<Fenced>(actions, liveness_link(3))[0].reason.message,
              HasSubstr("'released', which only a head sends"));
}

TEST_F(HeadMachineTest, closes_a_stranger_that_does_not_ask_or_talks_nonsense) {
  head_.connected(actors_link(2), node_id(2), now_);
  head_.received(actors_link(2), Leave{}, now_);
  EXPECT_TRUE(closes(head_.take_actions(), actors_link(2)));
  head_.connected(actors_link(3), node_id(3), now_);
  EXPECT_TRUE(closes(pass(31s), actors_link(3)));
}

TEST_F(HeadMachineTest, ends_the_cluster_when_all_have_heard_of_it) {
  bring_in(2);
  head_.leave(now_);
  const auto actions = head_.take_actions();
  ASSERT_EQ(sent<Ended>(actions, liveness_link(2)).size(), 1u);
  EXPECT_TRUE(only<Out>(actions).empty());
  head_.lost(liveness_link(2), {Code::cancelled, "closed"}, now_);
  EXPECT_EQ(only<Out>(head_.take_actions()).size(), 1u);
}

TEST_F(HeadMachineTest, ends_the_cluster_in_time_whatever_nodes_do) {
  bring_in(2);
  head_.leave(now_);
  head_.take_actions();
  EXPECT_THAT(refusal(ask(3), 3), HasSubstr("ending"));
  EXPECT_EQ(only<Out>(pass(kTiming.limit)).size(), 1u);
  EXPECT_TRUE(closes(ask(4), actors_link(4)));
}

}  // namespace
}  // namespace troupe::membership
