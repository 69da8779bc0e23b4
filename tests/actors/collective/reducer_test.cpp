// The actors in one process: each "node" is an actor of the same system, and all run on the test's
// thread, in a fixed order, whenever the test says so.
#include "actors/collective/reducer.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/collective/all_reduce.hpp"
#include "runtime/remoting/caf_error.hpp"
#include "tests/actors/collective/simulation.hpp"

namespace troupe::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kLimit = std::chrono::seconds(60);

struct Config : caf::actor_system_config {
  Config() {
    collective::add_message_types(*this);
    set("scheduler.policy", caf::atom("testing"));
  }
};

class ActorTest : public ::testing::Test {
protected:
  /// Lets all actors run until none has a message.
  void settle() { dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).run(); }

  template <class T>
  T next(caf::scoped_actor& self) {
    settle();
    T out;
    self->receive([&](T& x) { out = std::move(x); },
                  caf::others >> [](caf::message_view& x) -> caf::result<caf::message> {
                    ADD_FAILURE() << "unexpected " << to_string(x.content());
                    return caf::message{};
                  },
                  caf::after(std::chrono::seconds(0)) >> [] { ADD_FAILURE() << "nothing came"; });
    return out;
  }

  Config config_;
  caf::actor_system system_{config_};
};

class ReducerTest : public ActorTest {
protected:
  void SetUp() override {
    spec_.node_of_rank = {0, 0, 1};
    spec_.nodes = 2;
    spec_.bucket_elements = {3, 20000};
    spec_.extras = 1;
    spec_.tuning = {4096, 4096, 0, false};
  }
  void TearDown() override {
    for (const auto& reducer : reducers_)
      caf::anon_send_exit(reducer, caf::exit_reason::user_shutdown);
    settle();
  }
  void begin(std::uint64_t generation, std::uint64_t step) {
    for (std::uint32_t node = 0; node < 2; ++node)
      caf::anon_send(reducers_[node],
                     Peers{generation, step, node, reducers_, spec_, listeners_[node]});
  }
  void give(std::uint64_t generation, std::uint64_t step,
            const std::vector<std::vector<float>>& small,
            const std::vector<std::vector<float>>& large) {
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const auto& to = reducers_[spec_.node_of_rank[rank]];
      caf::anon_send(to, GradientReady{generation, step, rank, 1, to_buffer(large[rank])});
      caf::anon_send(to, GradientReady{generation, step, rank, 0, to_buffer(small[rank])});
      caf::anon_send(to, ExtrasReady{generation, step, rank, {1.5}});
    }
  }

  PlanSpec spec_;
  std::vector<caf::actor> reducers_{spawn_reducer(system_), spawn_reducer(system_)};
  caf::scoped_actor first_{system_};
  caf::scoped_actor second_{system_};
  std::vector<caf::actor> listeners_{caf::actor_cast<caf::actor>(first_),
                                     caf::actor_cast<caf::actor>(second_)};
};

TEST_F(ReducerTest, EveryListenerGetsTheSumsOfEveryStep) {
  std::mt19937_64 random(5);
  begin(1, 7);
  for (std::uint64_t step = 7; step < 10; ++step) {
    std::vector<std::vector<float>> small, large;
    for (int rank = 0; rank < 3; ++rank) {
      small.push_back(draw_values(random, 3));
      large.push_back(draw_values(random, 20000));
    }
    give(1, step, small, large);
    for (auto* self : {&first_, &second_}) {
      std::map<std::uint32_t, std::vector<float>> sums;
      for (int i = 0; i < 2; ++i) {
        const auto sum = next<BucketSum>(*self);
        EXPECT_EQ(sum.step, step);
        sums[sum.bucket] = to_floats(sum.sum);
      }
      EXPECT_EQ(sums[0], naive_sum({0, 3}, small));
      EXPECT_EQ(sums[1], naive_sum({0, 3}, large));
      const auto done = next<StepSum>(*self);
      EXPECT_EQ(done.step, step);
      EXPECT_THAT(done.extras, ElementsAre(4.5));
    }
  }
}

TEST_F(ReducerTest, AStepIsDoneAgainInANewGeneration) {
  const std::vector<std::vector<float>> small(3, {1, 2, 3}), large(3, std::vector<float>(20000, 1));
  begin(1, 0);
  caf::anon_send(reducers_[0], GradientReady{1, 0, 0, 0, to_buffer(small[0])});
  for (const auto& reducer : reducers_) caf::anon_send(reducer, EndGeneration{1});
  begin(2, 0);
  give(1, 0, small, large);  // too late: dropped in silence
  give(2, 0, small, large);
  for (auto* self : {&first_, &second_}) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(next<BucketSum>(*self).generation, 2u);
    EXPECT_EQ(next<StepSum>(*self).generation, 2u);
  }
}

TEST_F(ReducerTest, TheListenerIsToldOfAWrongGradient) {
  begin(1, 0);
  caf::anon_send(reducers_[0], GradientReady{1, 0, 0, 0, to_buffer(std::vector<float>(2))});
  const auto failed = next<ReductionFailed>(first_);
  EXPECT_EQ(static_cast<Code>(failed.code), Code::shape_mismatch);
  EXPECT_THAT(failed.message, HasSubstr("rank 0 for bucket 0 has 8 bytes where the plan says 12"));
}

TEST_F(ReducerTest, TheListenerIsToldOfAWrongPlan) {
  spec_.node_of_rank = {0, 9, 1};
  begin(1, 0);
  EXPECT_THAT(next<ReductionFailed>(first_).message, HasSubstr("rank 1 is placed on node 9"));
}

TEST_F(ReducerTest, TheListenerIsToldThatAPeerIsGone) {
  begin(1, 0);
  caf::anon_send_exit(reducers_[1], caf::exit_reason::kill);
  const auto failed = next<ReductionFailed>(first_);
  EXPECT_EQ(static_cast<Code>(failed.code), Code::unavailable);
  EXPECT_THAT(failed.message, HasSubstr("reducer of node 1 is gone"));
}

TEST_F(ReducerTest, AMessageFromAnotherActorThanItSaysIsDropped) {
  begin(1, 0);
  caf::anon_send(reducers_[0], Extras{1, 0, (*ReducePlan::make(spec_))->fingerprint(), 1, {100}});
  EXPECT_THAT(next<ReductionFailed>(first_).message, HasSubstr("came from another actor"));
}

class AllReduceTest : public ActorTest {
protected:
  void make(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) members_.push_back(spawn_all_reduce(system_));
    for (std::uint32_t i = 0; i < count; ++i) caf::anon_send(members_[i], Group{members_, i, {}});
  }
  void TearDown() override {
    for (const auto& member : members_)
      caf::anon_send_exit(member, caf::exit_reason::user_shutdown);
    settle();
  }
  auto ask(std::uint32_t member, const std::vector<float>& values) {
    return self_->request(members_[member], kLimit, AllReduce{to_buffer(values)});
  }
  template <class Handle>
  std::vector<float> sum_of(Handle& handle) {
    settle();
    std::vector<float> sum;
    handle.receive([&](AllReduced& x) { sum = to_floats(x.sum); },
                   [&](caf::error& e) { ADD_FAILURE() << remoting::from_caf(e).message; });
    return sum;
  }
  template <class Handle>
  Error error_of(Handle& handle) {
    settle();
    Error error;
    handle.receive([&](AllReduced&) { ADD_FAILURE() << "no error"; },
                   [&](caf::error& e) { error = remoting::from_caf(e); });
    return error;
  }

  std::vector<caf::actor> members_;
  caf::scoped_actor self_{system_};
};

TEST_F(AllReduceTest, AllMembersGetTheSameSumForAnySize) {
  std::mt19937_64 random(9);
  for (const std::uint32_t count : {1u, 2u, 3u, 4u}) {
    TearDown();
    members_.clear();
    make(count);
    for (const std::size_t size : {1u, 1000u, 300'000u, 7u, 2'000'000u}) {
      std::vector<std::vector<float>> values;
      for (std::uint32_t i = 0; i < count; ++i) values.push_back(draw_values(random, size));
      std::vector<decltype(ask(0, {}))> asked;
      for (std::uint32_t i = count; i-- > 0;) asked.push_back(ask(i, values[i]));
      const auto expected = naive_sum({0, count}, values);
      for (auto& handle : asked) EXPECT_EQ(sum_of(handle), expected);
    }
  }
}

TEST_F(AllReduceTest, RequestsAreServedInOrder) {
  make(2);
  std::vector<decltype(ask(0, {}))> first, second;
  for (int i = 1; i <= 20; ++i) first.push_back(ask(0, std::vector<float>(i, 1.0f * i)));
  for (int i = 1; i <= 20; ++i) second.push_back(ask(1, std::vector<float>(i, 2.0f * i)));
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(sum_of(first[i - 1]), std::vector<float>(i, 3.0f * i));
    EXPECT_EQ(sum_of(second[i - 1]), std::vector<float>(i, 3.0f * i));
  }
}

TEST_F(AllReduceTest, MembersThatDisagreeOnTheSizeAllFail) {
  make(2);
  auto a = ask(0, {1, 2});
  auto b = ask(1, {1, 2, 3});
  EXPECT_EQ(error_of(a).code, Code::protocol_error);
  EXPECT_EQ(error_of(b).code, Code::protocol_error);
  auto later = ask(0, {1, 2});
  EXPECT_EQ(error_of(later).code, Code::protocol_error);
}

TEST_F(AllReduceTest, ABrokenBufferIsRefusedAndChangesNothing) {
  make(2);
  auto bad = self_->request(members_[0], kLimit, AllReduce{});
  EXPECT_EQ(error_of(bad).code, Code::invalid_argument);
  auto a = ask(0, {1});
  auto b = ask(1, {2});
  EXPECT_THAT(sum_of(a), ElementsAre(3));
  EXPECT_THAT(sum_of(b), ElementsAre(3));
}

TEST_F(AllReduceTest, TheLossOfAMemberFailsWhatWaitsAndWhatComes) {
  make(3);
  auto waiting = ask(0, {1});
  caf::anon_send_exit(members_[2], caf::exit_reason::kill);
  const auto error = error_of(waiting);
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_THAT(error.message, HasSubstr("member 2 of the group is gone"));
  auto later = ask(0, {1});
  EXPECT_EQ(error_of(later).code, Code::unavailable);
}

}  // namespace
}  // namespace troupe::collective
