#include "actors/collective/reduce_machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/collective/simulation.hpp"

namespace troupe::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Node 0 of two, with one rank each; one bucket of four values, owned by node 0; the test plays
/// node 1.
class ReduceMachineTest : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(machine_.start(plan_, 0, 5, 10).ok()); }

  static std::shared_ptr<const ReducePlan> make_plan(std::uint32_t extras = 0) {
    PlanSpec spec{{0, 1}, 2, {4}, extras, {1 << 20, 32 << 10, 0, false}};
    return *ReducePlan::make(spec);
  }
  Partial partial(std::uint64_t step = 10, std::uint64_t generation = 5) const {
    return {generation, step, plan_->fingerprint(), 1, 0, {to_buffer(theirs_)}};
  }
  Status add(std::uint64_t step = 10, std::uint32_t rank = 0, std::uint32_t bucket = 0) {
    return machine_.add_gradient(5, step, rank, bucket, to_buffer(mine_));
  }

  const std::vector<float> mine_{1, 2, 3, 4};
  const std::vector<float> theirs_{10, 20, 30, 40};
  std::shared_ptr<const ReducePlan> plan_ = make_plan();
  Recorder out_;
  ReduceMachine machine_{{}, out_};
};

TEST_F(ReduceMachineTest, TheOwnerAddsAndSendsTheSumToTheOthers) {
  ASSERT_TRUE(add().ok());
  EXPECT_THAT(out_.steps, IsEmpty());
  ASSERT_TRUE(machine_.receive(partial()).ok());
  EXPECT_THAT(to_floats(out_.buckets.at({10, 0})), ElementsAre(11, 22, 33, 44));
  ASSERT_THAT(out_.sent, SizeIs(1));
  EXPECT_EQ(out_.sent[0].to, 1u);
  EXPECT_THAT(to_floats(std::get<SliceSum>(out_.sent[0].message).sum), ElementsAre(11, 22, 33, 44));
  ASSERT_THAT(out_.steps, SizeIs(1));
  EXPECT_EQ(out_.steps[0].step, 10u);
  EXPECT_EQ(machine_.step(), 11u);
}

TEST_F(ReduceMachineTest, PartsMayComeBeforeTheLocalGradient) {
  ASSERT_TRUE(machine_.receive(partial()).ok());
  EXPECT_THAT(out_.steps, IsEmpty());
  ASSERT_TRUE(add().ok());
  EXPECT_THAT(out_.steps, SizeIs(1));
}

TEST_F(ReduceMachineTest, TheNextStepIsKeptUntilItsTurnAndALaterOneIsRefused) {
  ASSERT_TRUE(machine_.receive(partial(11)).ok());
  EXPECT_EQ(machine_.receive(partial(12)).code(), Code::protocol_error);
  ASSERT_TRUE(machine_.receive(partial(10)).ok());
  ASSERT_TRUE(add(10).ok());
  EXPECT_THAT(out_.steps, SizeIs(1));
  ASSERT_TRUE(add(11).ok());
  EXPECT_THAT(out_.steps, SizeIs(2));
}

TEST_F(ReduceMachineTest, AStepThatIsDoneIsRefused) {
  ASSERT_TRUE(machine_.receive(partial()).ok());
  ASSERT_TRUE(add().ok());
  EXPECT_EQ(machine_.receive(partial()).code(), Code::protocol_error);
  EXPECT_EQ(add(10).code(), Code::failed_precondition);
}

TEST_F(ReduceMachineTest, ARankIsNeverCountedTwice) {
  ASSERT_TRUE(machine_.receive(partial()).ok());
  const auto again = machine_.receive(partial());
  EXPECT_EQ(again.code(), Code::protocol_error);
  EXPECT_THAT(again.error().message, HasSubstr("slice 0 came twice"));
  ASSERT_TRUE(add().ok());
  EXPECT_THAT(to_floats(out_.buckets.at({10, 0})), ElementsAre(11, 22, 33, 44));
}

TEST_F(ReduceMachineTest, ALocalRankThatGivesTwiceIsTold) {
  PlanSpec spec{{0, 0, 1}, 2, {4}, 0, {1 << 20, 32 << 10, 0, false}};
  ASSERT_TRUE(machine_.start(*ReducePlan::make(spec), 0, 6, 0).ok());
  ASSERT_TRUE(machine_.add_gradient(6, 0, 0, 0, to_buffer(mine_)).ok());
  const auto again = machine_.add_gradient(6, 0, 0, 0, to_buffer(mine_));
  EXPECT_EQ(again.code(), Code::failed_precondition);
  EXPECT_THAT(again.error().message, HasSubstr("twice"));
}

TEST_F(ReduceMachineTest, WrongLocalValuesAreNamed) {
  EXPECT_THAT(add(10, 1).error().message, HasSubstr("rank 1 is not placed on this node"));
  EXPECT_THAT(add(10, 0, 3).error().message, HasSubstr("bucket 3"));
  EXPECT_EQ(add(11).code(), Code::failed_precondition);
  const std::vector<float> shorter{1, 2};
  const auto wrong = machine_.add_gradient(5, 10, 0, 0, to_buffer(shorter));
  EXPECT_EQ(wrong.code(), Code::shape_mismatch);
  EXPECT_THAT(wrong.error().message, HasSubstr("has 8 bytes where the plan says 16"));
}

TEST_F(ReduceMachineTest, MessagesThatContradictThePlanChangeNothing) {
  auto bad = partial();
  bad.plan ^= 1;
  EXPECT_THAT(machine_.receive(bad).error().message, HasSubstr("another plan"));
  bad = partial();
  bad.from = 0;
  EXPECT_EQ(machine_.receive(bad).code(), Code::protocol_error);
  bad.from = 7;
  EXPECT_EQ(machine_.receive(bad).code(), Code::protocol_error);
  bad = partial();
  bad.slice = 9;
  EXPECT_THAT(machine_.receive(bad).error().message, HasSubstr("no slice 9"));
  bad = partial();
  bad.parts.push_back(bad.parts[0]);
  EXPECT_THAT(machine_.receive(bad).error().message, HasSubstr("2 parts where its ranks make 1"));
  bad = partial();
  bad.parts[0] = bad.parts[0].slice(0, 12);
  EXPECT_EQ(machine_.receive(bad).code(), Code::shape_mismatch);
  bad = partial();
  bad.parts[0] = to_buffer(std::vector<float>(5)).slice(1, 16);
  EXPECT_EQ(machine_.receive(bad).code(), Code::shape_mismatch);
  EXPECT_EQ(machine_.receive(SliceSum{5, 10, plan_->fingerprint(), 1, 0, to_buffer(mine_)}).code(),
            Code::protocol_error);
  EXPECT_EQ(machine_.receive(Extras{5, 10, plan_->fingerprint(), 1, {}}).code(),
            Code::protocol_error);

  ASSERT_TRUE(machine_.receive(partial()).ok());
  ASSERT_TRUE(add().ok());
  EXPECT_THAT(to_floats(out_.buckets.at({10, 0})), ElementsAre(11, 22, 33, 44));
}

TEST_F(ReduceMachineTest, ASumOfWhatThisNodeHasNotGivenIsRefused) {
  ASSERT_TRUE(machine_.start(plan_, 1, 6, 0).ok());
  const SliceSum sum{6, 0, plan_->fingerprint(), 0, 0, to_buffer(mine_)};
  EXPECT_THAT(machine_.receive(sum).error().message, HasSubstr("was not sent"));
  ASSERT_TRUE(machine_.add_gradient(6, 0, 1, 0, to_buffer(theirs_)).ok());
  EXPECT_TRUE(machine_.receive(sum).ok());
  EXPECT_THAT(out_.steps, SizeIs(1));
}

TEST_F(ReduceMachineTest, AnOlderGenerationIsStaleAndANewerOneWaits) {
  EXPECT_EQ(machine_.receive(partial(10, 4)).code(), Code::stale_generation);
  ASSERT_TRUE(machine_.receive(partial(10, 6)).ok());
  EXPECT_EQ(machine_.kept_bytes(), 16u);
  ASSERT_TRUE(add().ok());
  EXPECT_THAT(out_.steps, IsEmpty());
  ASSERT_TRUE(machine_.start(plan_, 0, 6, 10).ok());
  EXPECT_EQ(machine_.kept_bytes(), 0u);
  EXPECT_EQ(machine_.receive(partial(10, 5)).code(), Code::stale_generation);
  ASSERT_TRUE(machine_.add_gradient(6, 10, 0, 0, to_buffer(mine_)).ok());
  EXPECT_THAT(to_floats(out_.buckets.at({10, 0})), ElementsAre(11, 22, 33, 44));
}

TEST_F(ReduceMachineTest, WhatWaitsForANewerGenerationIsBounded) {
  ReduceMachine::Options options;
  options.max_kept_bytes = 40;
  ReduceMachine machine(options, out_);
  EXPECT_TRUE(machine.receive(partial(10, 6)).ok());
  EXPECT_TRUE(machine.receive(partial(10, 7)).ok());
  EXPECT_EQ(machine.receive(partial(10, 8)).code(), Code::resource_exhausted);
  EXPECT_EQ(machine.kept_bytes(), 32u);
}

TEST_F(ReduceMachineTest, AbortEndsTheGenerationAndLetsGoOfAllBuffers) {
  Buffer gradient = to_buffer(mine_);
  ASSERT_TRUE(machine_.add_gradient(5, 10, 0, 0, gradient).ok());
  EXPECT_FALSE(gradient.unique());
  machine_.abort();
  EXPECT_TRUE(gradient.unique());
  EXPECT_FALSE(machine_.active());
  EXPECT_EQ(machine_.receive(partial()).code(), Code::stale_generation);
  EXPECT_EQ(add().code(), Code::stale_generation);
  EXPECT_EQ(machine_.start(plan_, 0, 5, 10).code(), Code::failed_precondition);
  EXPECT_TRUE(machine_.start(plan_, 0, 6, 10).ok());
  machine_.abort();
  machine_.abort();
}

TEST_F(ReduceMachineTest, GradientsAreSentFromWhereTheyLie) {
  ASSERT_TRUE(machine_.start(plan_, 1, 6, 0).ok());
  const Buffer gradient = to_buffer(theirs_);
  ASSERT_TRUE(machine_.add_gradient(6, 0, 1, 0, gradient).ok());
  ASSERT_THAT(out_.sent, SizeIs(1));
  EXPECT_EQ(std::get<Partial>(out_.sent[0].message).parts[0].data(), gradient.data());
}

TEST_F(ReduceMachineTest, AStepWaitsForTheExtraValuesOfAllNodes) {
  const auto plan = make_plan(2);
  ASSERT_TRUE(machine_.start(plan, 0, 6, 0).ok());
  ASSERT_TRUE(machine_.add_gradient(6, 0, 0, 0, to_buffer(mine_)).ok());
  ASSERT_TRUE(
      machine_.receive(Partial{6, 0, plan->fingerprint(), 1, 0, {to_buffer(theirs_)}}).ok());
  EXPECT_THAT(out_.buckets, SizeIs(1));
  EXPECT_THAT(out_.steps, IsEmpty());
  EXPECT_EQ(machine_.add_extras(6, 0, 0, std::vector<double>{1}).code(), Code::shape_mismatch);
  ASSERT_TRUE(machine_.add_extras(6, 0, 0, std::vector<double>{1, 2}).ok());
  EXPECT_EQ(machine_.add_extras(6, 0, 0, std::vector<double>{1, 2}).code(),
            Code::failed_precondition);
  EXPECT_THAT(out_.steps, IsEmpty());
  ASSERT_TRUE(machine_.receive(Extras{6, 0, plan->fingerprint(), 1, {0.5, 40}}).ok());
  ASSERT_THAT(out_.steps, SizeIs(1));
  EXPECT_THAT(out_.steps[0].extras, ElementsAre(1.5, 42));
}

TEST_F(ReduceMachineTest, OneNodeNeedsNoMessage) {
  PlanSpec spec{{0, 0}, 1, {4}, 1, {}};
  ASSERT_TRUE(machine_.start(*ReducePlan::make(spec), 0, 6, 0).ok());
  for (std::uint64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(machine_.add_gradient(6, step, 1, 0, to_buffer(theirs_)).ok());
    ASSERT_TRUE(machine_.add_gradient(6, step, 0, 0, to_buffer(mine_)).ok());
    ASSERT_TRUE(machine_.add_extras(6, step, 0, std::vector<double>{1}).ok());
    ASSERT_TRUE(machine_.add_extras(6, step, 1, std::vector<double>{2}).ok());
    EXPECT_THAT(to_floats(out_.buckets.at({step, 0})), ElementsAre(11, 22, 33, 44));
    EXPECT_THAT(out_.steps.back().extras, ElementsAre(3));
  }
  EXPECT_THAT(out_.sent, IsEmpty());
  EXPECT_THAT(out_.steps, SizeIs(3));
}

TEST_F(ReduceMachineTest, ANodeOutsideThePlanIsRefused) {
  EXPECT_EQ(machine_.start(plan_, 2, 6, 0).code(), Code::invalid_argument);
  EXPECT_TRUE(add().ok()) << "the generation before goes on";
}

class CallsBack : public Recorder {
public:
  void bucket_done(std::uint64_t, std::uint32_t, Buffer) override { machine->abort(); }
  ReduceMachine* machine = nullptr;
};

TEST(ReduceMachineDeathTest, AnEffectMustNotCallBack) {
  CallsBack effects;
  ReduceMachine machine({}, effects);
  effects.machine = &machine;
  ASSERT_TRUE(machine.start(*ReducePlan::make({{0}, 1, {1}, 0, {}}), 0, 1, 0).ok());
  const std::vector<float> one{1};
  EXPECT_DEATH(static_cast<void>(machine.add_gradient(1, 0, 0, 0, to_buffer(one))),
               "called it back");
}

}  // namespace
}  // namespace troupe::collective
