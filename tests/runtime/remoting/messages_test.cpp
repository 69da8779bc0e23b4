#include <array>
#include <numeric>
#include <thread>

#include <caf/all.hpp>

#include "tests/runtime/remoting/remoting_fixture.hpp"

namespace troupe::remoting {
namespace {

class Messages : public testing::TestWithParam<Network> {
protected:
  RemotingFixture nodes{GetParam()};
  TestNode& a = nodes.add("a");
  TestNode& b = nodes.add("b");
};

INSTANTIATE_TEST_SUITE_P(Over, Messages, testing::Values(Network::fake, Network::ucx),
                         [](const auto& kind) {
                           return kind.param == Network::fake ? "fake" : "ucx";
                         });

TEST_P(Messages, TwoRuntimesOfOneProcessHaveTheirOwnCafNodes) {
  EXPECT_NE(a.system().node(), b.system().node());
  EXPECT_EQ(a.system().node(), to_caf(a.id));
  EXPECT_EQ(from_caf(b.system().node()), b.id);
}

TEST_P(Messages, ARequestToAnotherNodeGetsItsResponse) {
  const auto remote = reach(a, b, b.system().spawn(echo));
  caf::scoped_actor self{a.system()};
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{42}).value(), 42);
  EXPECT_EQ(ask<std::string>(self, remote, std::string("hello")).value(), "hello");
  const Sample sample{"x", {1.5, -2.25, 1e300}, {{"k", 7}, {"l", -1}}, {true, false, true}};
  EXPECT_EQ(ask<Sample>(self, remote, sample).value(), sample);
}

TEST_P(Messages, AnEventBasedActorAsksAndAnswersAcrossNodes) {
  const auto remote = reach(a, b, b.system().spawn(echo));
  Collected<std::int32_t> answers;
  a.system().spawn([&, remote](caf::event_based_actor* self) {
    for (std::int32_t i = 0; i < 10; ++i)
      self->request(remote, caf::infinite, i).then([&answers](std::int32_t x) { answers.add(x); });
  });
  const auto got = answers.wait(10);
  std::vector<std::int32_t> wanted(10);
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(got, wanted);
}

TEST_P(Messages, AnActorOfAnotherNodeKnowsItsSender) {
  const auto remote =
      reach(a, b, b.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
        return {[self](std::int32_t x) {
          // Not a response: a message of its own.
          self->send(caf::actor_cast<caf::actor>(self->current_sender()), x + 1);
        }};
      }));
  caf::scoped_actor self{a.system()};
  self->send(remote, std::int32_t{1});
  std::int32_t got = 0;
  self->receive([&](std::int32_t x) { got = x; });
  EXPECT_EQ(got, 2);
}

TEST_P(Messages, ErrorsOfARequestCarryOurCodeAndSentence) {
  const auto remote = reach(a, b, b.system().spawn([](caf::event_based_actor*) -> caf::behavior {
    return {[](std::int32_t) -> caf::result<std::int32_t> {
      return to_caf(Error{Code::shape_mismatch, "3 is not 4"});
    }};
  }));
  caf::scoped_actor self{a.system()};
  const auto answer = ask<std::int32_t>(self, remote, std::int32_t{1});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.code(), Code::shape_mismatch);
  EXPECT_EQ(answer.error().message, "3 is not 4");
}

TEST_P(Messages, HandlesInMessagesWorkOnTheNodeThatGetsThem) {
  // b is given an actor of a, and asks it.
  const auto asker =
      reach(a, b, b.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
        return {[self](const caf::actor& whom, std::int32_t x) { return self->delegate(whom, x); }};
      }));
  const auto local = a.system().spawn(echo);
  caf::scoped_actor self{a.system()};
  EXPECT_EQ(ask<std::int32_t>(self, asker, local, std::int32_t{5}).value(), 5);
}

TEST_P(Messages, AHandleOfAThirdNodeConnectsOnDemand) {
  auto& c = nodes.add("c");
  const auto at_c = reach(a, c, c.system().spawn(echo));
  const auto asker =
      reach(a, b, b.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
        return {[self](const caf::actor& whom, std::int32_t x) {
          auto promise = self->make_response_promise<std::int32_t>();
          self->request(whom, caf::infinite, x).then([promise](std::int32_t y) mutable {
            promise.deliver(y + 100);
          });
          return promise;
        }};
      }));
  // b and c have never met.
  caf::scoped_actor self{a.system()};
  EXPECT_EQ(ask<std::int32_t>(self, asker, at_c, std::int32_t{5}).value(), 105);
}

TEST_P(Messages, AForwardedRequestIsAnsweredByTheThirdNodeToTheFirst) {
  auto& c = nodes.add("c");
  const auto at_c = reach(b, c, c.system().spawn(echo));
  const auto forwarder =
      reach(a, b, b.system().spawn([at_c](caf::event_based_actor* self) -> caf::behavior {
        return {[self, at_c](std::int32_t x) { return self->delegate(at_c, x); }};
      }));
  caf::scoped_actor self{a.system()};
  EXPECT_EQ(ask<std::int32_t>(self, forwarder, std::int32_t{9}).value(), 9);
}

TEST_P(Messages, MessagesOfEachSenderArriveInOrder) {
  constexpr std::int32_t kEach = 10'000;
  constexpr std::int32_t kSenders = 4;
  struct Order {
    std::array<std::int32_t, kSenders> next{};
    std::int32_t wrong = 0, count = 0;
  };
  Collected<std::int32_t> done;
  const auto sink = b.system().spawn([&](caf::stateful_actor<Order>* self) -> caf::behavior {
    return {[self, &done](std::int32_t who, std::int32_t number) {
      auto& state = self->state;
      if (state.next[static_cast<std::size_t>(who)]++ != number) ++state.wrong;
      if (++state.count == kEach * kSenders) done.add(state.wrong);
    }};
  });
  const auto remote = reach(a, b, sink);
  std::vector<std::thread> senders;
  for (std::int32_t who = 0; who < kSenders; ++who)
    senders.emplace_back([&, who] {
      caf::scoped_actor self{a.system()};
      for (std::int32_t i = 0; i < kEach; ++i) self->send(remote, who, i);
    });
  for (auto& sender : senders) sender.join();
  EXPECT_EQ(done.wait(1), std::vector<std::int32_t>{0});
}

TEST_P(Messages, BuffersOfAllSizesArriveUnchanged) {
  const auto remote = reach(a, b, b.system().spawn(echo));
  caf::scoped_actor self{a.system()};
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kOutOfBandBytes - 1,
                                  kOutOfBandBytes, std::size_t{1} << 20, std::size_t{16} << 20}) {
    const auto sent = filled(bytes, 3);
    const auto got = ask<Buffer>(self, remote, sent);
    ASSERT_TRUE(got.ok()) << to_string(got.error());
    EXPECT_TRUE(same(sent, *got)) << bytes;
  }
}

TEST_P(Messages, SeveralBuffersTravelInContainersTypesAndNestedMessages) {
  const auto remote = reach(a, b, b.system().spawn(echo));
  caf::scoped_actor self{a.system()};
  const Bundle bundle{filled(5000, 1),
                      {filled(10, 2), filled(70'000, 3), Buffer{}, filled(4096, 4)}};
  const auto got = ask<Bundle>(self, remote, bundle);
  ASSERT_TRUE(got.ok()) << to_string(got.error());
  EXPECT_TRUE(same(bundle.first, got->first));
  ASSERT_EQ(bundle.more.size(), got->more.size());
  for (std::size_t i = 0; i < bundle.more.size(); ++i)
    EXPECT_TRUE(same(bundle.more[i], got->more[i])) << i;

  const auto nested = caf::make_message(std::string("in"), filled(9000, 5), filled(12, 6));
  caf::message back;
  self->request(remote, kPatience, std::int32_t{1}, nested)
      .receive([&](std::int32_t, const caf::message& x) { back = x; },
               [](const caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  ASSERT_TRUE((back.match_elements<std::string, Buffer, Buffer>()));
  EXPECT_TRUE(same(back.get_as<Buffer>(1), filled(9000, 5)));
  EXPECT_TRUE(same(back.get_as<Buffer>(2), filled(12, 6)));
}

TEST_P(Messages, AMessageOfAnUnknownTypeIsNotSentAndTheRequestSaysSo) {
  struct Secret {
    std::int32_t x = 0;
  };
  std::atomic<int> warnings{0};
  Options options;
  options.configure = know_types;
  options.warn = [&](const std::string&) { ++warnings; };
  auto& c = nodes.add("c", std::move(options));
  const auto remote = reach(c, b, b.system().spawn(echo));
  caf::scoped_actor self{c.system()};
  const auto answer = ask<std::int32_t>(self, remote, caf::allowed_unsafe_message_type<Secret>{});
  EXPECT_FALSE(answer.ok());
  EXPECT_EQ(warnings, 1);
  // What was sent before and after is not harmed.
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).value(), 1);
}

TEST_P(Messages, ALookupFindsNamesAndTellsOfUnknownOnes) {
  const auto actor = b.system().spawn(echo);
  ASSERT_TRUE(b.remoting->register_name("worker", actor).ok());
  EXPECT_EQ(b.remoting->register_name("worker", actor).code(), Code::already_exists);
  const auto found = a.remoting->lookup(b.id, "worker", kPatience);
  ASSERT_TRUE(found.ok()) << to_string(found.error());
  EXPECT_EQ(found->id(), actor.id());
  EXPECT_EQ(b.remoting->lookup(b.id, "worker", kPatience).value(), actor);

  const auto unknown = a.remoting->lookup(b.id, "nobody", kPatience);
  EXPECT_EQ(unknown.code(), Code::not_found);
  EXPECT_NE(unknown.error().message.find("'nobody'"), std::string::npos);
  EXPECT_EQ(b.remoting->lookup(b.id, "nobody", kPatience).code(), Code::not_found);

  b.remoting->unregister_name("worker");
  EXPECT_EQ(a.remoting->lookup(b.id, "worker", kPatience).code(), Code::not_found);
}

TEST_P(Messages, ANameGoesWithItsActor) {
  const auto actor = b.system().spawn(echo);
  ASSERT_TRUE(b.remoting->register_name("brief", actor).ok());
  caf::scoped_actor self{b.system()};
  self->monitor(actor);
  self->send_exit(actor, caf::exit_reason::user_shutdown);
  self->receive([](const caf::down_msg&) {});
  EXPECT_EQ(a.remoting->lookup(b.id, "brief", kPatience).code(), Code::not_found);
  EXPECT_TRUE(b.remoting->register_name("brief", b.system().spawn(echo)).ok());
}

TEST_P(Messages, ANameIsFreeBeforeAnybodyHearsOfItsActorsEnd) {
  const auto actor = b.system().spawn(echo);
  ASSERT_TRUE(b.remoting->register_name("brief", actor).ok());
  const auto next = b.system().spawn(echo);
  std::promise<std::pair<Code, Status>> heard;
  // What is attached last is told first.
  caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor([&] {
    const auto found = b.remoting->lookup(b.id, "brief", kPatience).code();
    heard.set_value({found, b.remoting->register_name("brief", next)});
  });
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  const auto [found, registered] = heard.get_future().get();
  EXPECT_EQ(found, Code::not_found);
  EXPECT_TRUE(registered.ok()) << to_string(registered.error());
  EXPECT_EQ(a.remoting->lookup(b.id, "brief", kPatience).value().id(), next.id());
}

TEST_P(Messages, ALookupOnANodeThatNobodyKnowsIsUnavailable) {
  const auto found = a.remoting->lookup(NodeId::random(), "x", kPatience);
  EXPECT_EQ(found.code(), Code::unavailable);
}

TEST_P(Messages, ActorsAreSpawnedOnOtherNodesByType) {
  for (auto* where : {&a, &b}) {
    const auto made =
        a.remoting->spawn(where->id, "adder", caf::make_message(std::int32_t{10}), kPatience);
    ASSERT_TRUE(made.ok()) << to_string(made.error());
    EXPECT_EQ(from_caf(made->node()), where->id);
    caf::scoped_actor self{a.system()};
    EXPECT_EQ(ask<std::int32_t>(self, *made, std::int32_t{1}).value(), 11);
  }
}

TEST_P(Messages, ASpawnOfAnUnknownTypeOrWithWrongArgumentsSaysSo) {
  for (auto* where : {&a, &b}) {
    const auto unknown = a.remoting->spawn(where->id, "dragon", {}, kPatience);
    EXPECT_EQ(unknown.code(), Code::not_found);
    EXPECT_NE(unknown.error().message.find("'dragon'"), std::string::npos);
    const auto wrong =
        a.remoting->spawn(where->id, "adder", caf::make_message(std::string("ten")), kPatience);
    EXPECT_EQ(wrong.code(), Code::invalid_argument);
  }
}

TEST_P(Messages, AnAsynchronousSpawnCallsBackOnce) {
  Collected<Result<caf::actor>> made;
  for (auto* where : {&a, &b})
    a.remoting->spawn_async(where->id, "adder", caf::make_message(std::int32_t{1}), kPatience,
                            [&](Result<caf::actor> r) { made.add(std::move(r)); });
  a.remoting->spawn_async(b.id, "dragon", {}, kPatience,
                          [&](Result<caf::actor> r) { made.add(std::move(r)); });
  const auto results = made.wait(3);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(std::count_if(results.begin(), results.end(), [](const auto& r) { return r.ok(); }), 2);
}

TEST_P(Messages, ASpawnThatNobodyAnswersEndsWithItsTime) {
  if (GetParam() != Network::fake) GTEST_SKIP() << "needs a network that can be held";
  nodes.network.hold(b.id);
  Collected<Result<caf::actor>> made;
  a.remoting->spawn_async(b.id, "adder", caf::make_message(std::int32_t{1}),
                          std::chrono::milliseconds(20),
                          [&](Result<caf::actor> r) { made.add(std::move(r)); });
  ASSERT_EQ(made.wait(1).size(), 1u);
  EXPECT_EQ(made.wait(1)[0].code(), Code::deadline_exceeded);
  EXPECT_EQ(a.remoting->lookup(b.id, "x", std::chrono::milliseconds(20)).code(),
            Code::deadline_exceeded);
  nodes.network.release(b.id);
}

/// `a` asks an actor of `b` that answers only once a later message over the same connection is
/// handled.
template <caf::spawn_options Os>
void expect_overtaking(TestNode& a, TestNode& b) {
  // Shared: its actor may still be at it when the answer is here.
  const auto go = std::make_shared<std::promise<void>>();
  auto gone = go->get_future().share();
  const auto slow =
      reach(a, b, b.system().spawn<Os>([gone](caf::event_based_actor*) -> caf::behavior {
        return {[gone](std::int32_t x) {
          gone.wait();
          return x;
        }};
      }),
            "slow");
  const auto quick = reach(a, b, b.system().spawn([go](caf::event_based_actor*) -> caf::behavior {
    return {[go](std::int32_t) { go->set_value(); }};
  }),
                           "quick");
  caf::scoped_actor self{a.system()};
  auto response = self->request(slow, caf::infinite, std::int32_t{1});
  self->send(quick, std::int32_t{2});
  std::int32_t got = 0;
  response.receive([&](std::int32_t x) { got = x; }, [](const caf::error&) {});
  EXPECT_EQ(got, 1);
}

TEST_P(Messages, ASlowActorDoesNotHoldUpOthers) {
  expect_overtaking<caf::detached>(a, b);
}

TEST(RunInline, AnActorThatBlocksWhereItRunsIsOvertaken) {
  // A cooperatively scheduled actor that misbehaves.
  RemotingFixture nodes{Network::ucx};
  auto& a = nodes.add("a");
  auto& b = nodes.add("b");
  expect_overtaking<caf::no_spawn_options>(a, b);
}

TEST(RunInline, AnActorRunsWhereItsMessageArrivesUnlessThatIsSwitchedOff) {
  const ManualClock still;
  for (const bool inline_on : {true, false}) {
    RemotingFixture nodes{Network::fake};
    auto& a = nodes.add("a");
    Options options;
    options.run_inline = inline_on;
    options.clock = &still;  // or a busy machine makes any actor slow
    auto& b = nodes.add("b", std::move(options));
    const auto remote = reach(a, b, b.system().spawn(echo));
    caf::scoped_actor self{a.system()};
    for (std::int32_t i = 0; i < 100; ++i) EXPECT_EQ(ask<std::int32_t>(self, remote, i).value(), i);
    if (inline_on)
      EXPECT_GT(b.fake->inline_runs(), 50u);
    else
      EXPECT_EQ(b.fake->inline_runs(), 0u);
  }
}

}  // namespace
}  // namespace troupe::remoting
