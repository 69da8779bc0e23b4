#include <caf/all.hpp>

#include "tests/runtime/remoting/remoting_fixture.hpp"

namespace troupe::remoting {
namespace {

/// An actor that takes every request and answers none.
caf::behavior silent(caf::event_based_actor* self) {
  return {[self](std::int32_t) { return self->make_response_promise<std::int32_t>(); }};
}

struct Ends {
  std::vector<caf::error> downs, exits;
};

class Loss : public testing::TestWithParam<Network> {
protected:
  /// Ends `node` as its death would.
  void end(TestNode& node) {
    nodes.forget(node.id);
    if (node.fake != nullptr)
      nodes.network.kill(node.id);
    else
      node.shut_down();
  }

  RemotingFixture nodes{GetParam()};
  TestNode& a = nodes.add("a");
  TestNode& b = nodes.add("b");
};

INSTANTIATE_TEST_SUITE_P(Over, Loss, testing::Values(Network::fake, Network::ucx),
                         [](const auto& kind) {
                           return kind.param == Network::fake ? "fake" : "ucx";
                         });

TEST_P(Loss, AMonitorHearsOnceOfTheEndOfARemoteActorWithItsReason) {
  const auto local = b.system().spawn(echo);
  const auto remote = reach(a, b, local);
  Collected<caf::error> downs;
  const auto held = a.system().spawn([&, remote](caf::event_based_actor* self) -> caf::behavior {
    self->monitor(remote);
    self->set_down_handler([&downs](caf::down_msg& x) { downs.add(x.reason); });
    return {[](std::int32_t) {}};
  });
  caf::scoped_actor self{a.system()};
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).value(), 1);
  self->send_exit(remote, caf::exit_reason::user_shutdown);
  const auto got = downs.wait(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0], caf::exit_reason::user_shutdown);
  // The node is still there, and a request to the actor fails at once.
  const auto answer = ask<std::int32_t>(self, remote, std::int32_t{1});
  EXPECT_EQ(answer.code(), Code::unavailable);
  EXPECT_TRUE(b.remoting->register_name("next", b.system().spawn(echo)).ok());
  EXPECT_TRUE(a.remoting->lookup(b.id, "next", kPatience).ok());
  EXPECT_EQ(downs.size(), 1u);
}

TEST_P(Loss, ARequestToAnActorThatEndedBeforeItArrivedFails) {
  const auto local = b.system().spawn(echo);
  const auto remote = reach(a, b, local);
  caf::scoped_actor self{a.system()};
  caf::scoped_actor there{b.system()};
  there->monitor(local);
  there->send_exit(local, caf::exit_reason::user_shutdown);
  there->receive([](const caf::down_msg&) {});
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).code(), Code::unavailable);
}

TEST_P(Loss, ALinkEndsTheOtherSideInBothDirections) {
  // Many times: the end of one meets the other node's monitor, on its way, in every place.
  for (int round = 0; round < 50; ++round) {
    const bool local_first = round % 2 == 0;
    const auto far = b.system().spawn(echo);
    const auto remote = reach(a, b, far);
    const auto near = a.system().spawn([remote](caf::event_based_actor* self) -> caf::behavior {
      self->link_to(remote);
      return {[](std::int32_t x) { return x; }};
    });
    caf::scoped_actor self{a.system()};
    caf::scoped_actor there{b.system()};
    self->monitor(near);
    there->monitor(far);
    EXPECT_EQ(ask<std::int32_t>(self, near, std::int32_t{1}).value(), 1);
    if (local_first)
      caf::anon_send_exit(near, caf::exit_reason::kill);
    else
      caf::anon_send_exit(far, caf::exit_reason::kill);
    const auto expect_kill = [](const caf::down_msg& x) {
      EXPECT_EQ(x.reason, caf::exit_reason::kill) << caf::to_string(x.reason);
    };
    self->receive(expect_kill);
    there->receive(expect_kill);
  }
}

/// An actor that lives through exit messages and tells of each.
caf::behavior survivor(caf::event_based_actor* self, Collected<caf::error>* exits,
                       const caf::actor& link) {
  self->set_exit_handler([exits](caf::exit_msg& x) { exits->add(x.reason); });
  if (link != nullptr) self->link_to(link);
  return {[](std::int32_t x) { return x; },
          [self](caf::unlink_atom, const caf::actor& other) { self->unlink_from(other); },
          [self](caf::sys_atom) { self->quit(caf::exit_reason::user_shutdown); }};
}

TEST_P(Loss, ALinkedActorThatTrapsExitsHearsOfTheEndExactlyOnce) {
  for (const bool local_first : {true, false}) {
    Collected<caf::error> near_exits, far_exits;
    const auto far = b.system().spawn(survivor, &far_exits, caf::actor{});
    const auto remote = reach(a, b, far);
    const auto near = a.system().spawn(survivor, &near_exits, remote);
    caf::scoped_actor self{a.system()};
    EXPECT_EQ(ask<std::int32_t>(self, near, std::int32_t{1}).value(), 1);
    EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).value(), 1);
    self->send(local_first ? near : remote, caf::sys_atom::value);
    auto& exits = local_first ? far_exits : near_exits;
    ASSERT_EQ(exits.wait(1).size(), 1u);
    EXPECT_EQ(exits.wait(1)[0], caf::exit_reason::user_shutdown);
    // Whatever else the end has set off has arrived by the time of these answers.
    const auto probe = reach(b, a, a.system().spawn(echo), "probe");
    caf::scoped_actor there{b.system()};
    EXPECT_EQ(ask<std::int32_t>(there, probe, std::int32_t{1}).value(), 1);
    EXPECT_EQ(ask<std::int32_t>(self, reach(a, b, b.system().spawn(echo), "probe"), std::int32_t{1})
                  .value(),
              1);
    const auto& lives = local_first ? far : near;
    EXPECT_EQ(ask<std::int32_t>(self, local_first ? remote : near, std::int32_t{2}).value(), 2);
    EXPECT_EQ(exits.size(), 1u);
    caf::anon_send_exit(lives, caf::exit_reason::kill);
  }
}

TEST_P(Loss, AnUnlinkedActorHearsNothing) {
  Collected<caf::error> near_exits, far_exits;
  const auto far = b.system().spawn(survivor, &far_exits, caf::actor{});
  const auto remote = reach(a, b, far);
  const auto near = a.system().spawn(survivor, &near_exits, remote);
  caf::scoped_actor self{a.system()};
  self->send(near, caf::unlink_atom::value, remote);
  EXPECT_EQ(ask<std::int32_t>(self, near, std::int32_t{1}).value(), 1);
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).value(), 1);
  self->monitor(near);
  self->send(near, caf::sys_atom::value);
  self->receive([](const caf::down_msg&) {});
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).value(), 1);
  EXPECT_EQ(far_exits.size(), 0u);
  caf::anon_send_exit(far, caf::exit_reason::kill);
}

TEST_P(Loss, ARequestInFlightToALostNodeFailsAtOnceAndDownAndExitComeOnce) {
  const auto remote = reach(a, b, b.system().spawn(silent));
  Collected<caf::error> errors, downs, exits;
  const auto watcher = a.system().spawn([&, remote](caf::event_based_actor* self) -> caf::behavior {
    self->monitor(remote);
    self->link_to(remote);
    self->set_down_handler([&](caf::down_msg& x) { downs.add(x.reason); });
    self->set_exit_handler([&](caf::exit_msg& x) { exits.add(x.reason); });
    // No time limit: only the loss can end it.
    self->request(remote, caf::infinite, std::int32_t{1})
        .then([](std::int32_t) { ADD_FAILURE() << "an answer from a silent actor"; },
              [&](caf::error& x) { errors.add(x); });
    return {[](std::int32_t x) { return x; }};
  });
  caf::scoped_actor self{a.system()};
  EXPECT_EQ(ask<std::int32_t>(self, watcher, std::int32_t{1}).value(), 1);
  end(b);
  ASSERT_EQ(errors.wait(1).size(), 1u);
  EXPECT_EQ(errors.wait(1)[0], caf::exit_reason::remote_link_unreachable);
  ASSERT_EQ(downs.wait(1).size(), 1u);
  EXPECT_EQ(downs.wait(1)[0], caf::exit_reason::remote_link_unreachable);
  ASSERT_EQ(exits.wait(1).size(), 1u);
  // One to a node that is known to be gone fails at once too.
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).code(), Code::unavailable);
  EXPECT_EQ(ask<std::int32_t>(self, watcher, std::int32_t{1}).value(), 1);
  EXPECT_EQ(downs.size(), 1u);
  EXPECT_EQ(exits.size(), 1u);
  caf::anon_send_exit(watcher, caf::exit_reason::kill);
}

TEST_P(Loss, ABlockingActorsRequestInFlightFailsToo) {
  const auto remote = reach(a, b, b.system().spawn(silent));
  caf::scoped_actor self{a.system()};
  auto response = self->request(remote, caf::infinite, std::int32_t{1});
  end(b);
  caf::error got;
  response.receive([](std::int32_t) {}, [&](caf::error& x) { got = x; });
  EXPECT_EQ(got, caf::exit_reason::remote_link_unreachable);
}

TEST_P(Loss, ANodeThatTheMembershipGivesUpIsRefusedFromThenOn) {
  const auto remote = reach(a, b, b.system().spawn(silent));
  caf::scoped_actor self{a.system()};
  auto response = self->request(remote, caf::infinite, std::int32_t{1});
  a.remoting->node_lost(b.id, Error{Code::unavailable, "no heartbeat for 3 s"});
  caf::error got;
  response.receive([](std::int32_t) {}, [&](caf::error& x) { got = x; });
  EXPECT_EQ(got, caf::exit_reason::remote_link_unreachable);
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).code(), Code::unavailable);
  EXPECT_EQ(a.remoting->lookup(b.id, "x", kPatience).code(), Code::unavailable);
  EXPECT_EQ(a.remoting->spawn(b.id, "echo", {}, kPatience).code(), Code::unavailable);
  // It comes back: nobody opens. The first that it asks may meet the connection that is ending.
  auto refused = b.remoting->lookup(a.id, "x", kPatience);
  while (refused.code() == Code::unavailable) refused = b.remoting->lookup(a.id, "x", kPatience);
  EXPECT_EQ(refused.code(), Code::failed_precondition);
  EXPECT_NE(refused.error().message.find("given up"), std::string::npos) << refused.error().message;
}

TEST_P(Loss, AHandleOfALostNodeIsDeadOnArrival) {
  auto& c = nodes.add("c");
  const auto at_b = reach(c, b, b.system().spawn(echo));
  a.remoting->node_lost(b.id, Error{Code::unavailable, "gone"});
  Collected<caf::error> downs;
  const auto taker =
      reach(c, a, a.system().spawn([&](caf::event_based_actor* self) -> caf::behavior {
        self->set_down_handler([&downs](caf::down_msg& x) { downs.add(x.reason); });
        return {[self](const caf::actor& whom) { self->monitor(whom); }};
      }));
  caf::scoped_actor self{c.system()};
  self->send(taker, at_b);
  ASSERT_EQ(downs.wait(1).size(), 1u);
  EXPECT_EQ(downs.wait(1)[0], caf::exit_reason::remote_link_unreachable);
}

TEST_P(Loss, MessagesForANodeThatCannotBeReachedBounce) {
  auto& c = nodes.add("c");
  const auto at_b = reach(c, b, b.system().spawn(echo));
  const auto asker =
      reach(c, a, a.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
        return {[self](const caf::actor& whom, std::int32_t x) {
          auto promise = self->make_response_promise<std::int32_t>();
          self->request(whom, caf::infinite, x)
              .then([promise](std::int32_t y) mutable { promise.deliver(y); },
                    [promise](caf::error& e) mutable { promise.deliver(std::move(e)); });
          return promise;
        }};
      }));
  nodes.forget(b.id);  // a has no connection to it, and nobody knows where it is
  caf::scoped_actor self{c.system()};
  const auto answer = ask<std::int32_t>(self, asker, at_b, std::int32_t{1});
  EXPECT_EQ(answer.code(), Code::unavailable);
}

TEST_P(Loss, ARequestThatIsTooLargeToSendFailsEvenIfItWaitedForAConnection) {
  auto& c = nodes.add("c");
  const auto at_b = reach(c, b, b.system().spawn(echo));
  const auto asker =
      reach(c, a, a.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
        return {[self](const caf::actor& whom) {
          auto promise = self->make_response_promise();
          self->request(whom, caf::infinite, std::string(std::size_t{65} << 20, 'x'))
              .then([promise](const std::string&) mutable { promise.deliver(std::int32_t{1}); },
                    [promise](caf::error& x) mutable { promise.deliver(std::move(x)); });
          return promise;
        }};
      }));
  caf::scoped_actor self{c.system()};
  // The first has no connection to wait behind, the second has one.
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(ask<std::int32_t>(self, asker, at_b).code(), Code::invalid_argument);
  EXPECT_EQ(ask<std::int32_t>(self, at_b, std::int32_t{3}).value(), 3);
}

TEST_P(Loss, ADelegatedRequestFailsWhenTheThirdNodeDies) {
  auto& c = nodes.add("c");
  const auto at_b = reach(c, b, b.system().spawn(silent));
  const auto forwarder =
      reach(a, c, c.system().spawn([at_b](caf::event_based_actor* self) -> caf::behavior {
        return {[self, at_b](std::int32_t x) { return self->delegate(at_b, x); },
                [](const std::string& x) { return x; }};
      }));
  caf::scoped_actor self{a.system()};
  auto response = self->request(forwarder, caf::infinite, std::int32_t{1});
  EXPECT_EQ(ask<std::string>(self, forwarder, std::string("x")).value(), "x");
  end(b);
  caf::error got;
  response.receive([](std::int32_t) {}, [&](caf::error& x) { got = x; });
  EXPECT_EQ(got, caf::exit_reason::remote_link_unreachable);
}

TEST_P(Loss, StopEndsEverythingThatWaits) {
  const auto remote = reach(a, b, b.system().spawn(silent));
  caf::scoped_actor self{a.system()};
  auto response = self->request(remote, caf::infinite, std::int32_t{1});
  Collected<Result<caf::actor>> made;
  a.remoting->stop();
  a.remoting->spawn_async(b.id, "echo", {}, kPatience,
                          [&](Result<caf::actor> r) { made.add(std::move(r)); });
  caf::error got;
  response.receive([](std::int32_t) {}, [&](caf::error& x) { got = x; });
  EXPECT_EQ(got, caf::exit_reason::remote_link_unreachable);
  ASSERT_EQ(made.wait(1).size(), 1u);
  EXPECT_FALSE(made.wait(1)[0].ok());
  EXPECT_FALSE(a.remoting->register_name("late", a.system().spawn(echo)).ok());
  EXPECT_FALSE(a.remoting->lookup(b.id, "x", kPatience).ok());
}

TEST_P(Loss, AnActorThatOnlyOtherNodesHeldDoesNotKeepTheSystemFromEnding) {
  // Its handle travels; then this node lets go of it.
  const auto keeper = reach(a, b, b.system().spawn([](caf::event_based_actor*) -> caf::behavior {
    return {[](const caf::actor&) { return std::int32_t{1}; }};
  }));
  {
    caf::scoped_actor self{a.system()};
    EXPECT_EQ(ask<std::int32_t>(self, keeper, a.system().spawn(echo)).value(), 1);
  }
  a.shut_down();  // hangs if it is kept
}

TEST(LossOnAFakeNetwork, WhatWaitsForAConnectionLeavesInOrder) {
  RemotingFixture nodes{Network::fake};
  auto& a = nodes.add("a");
  auto& b = nodes.add("b");
  auto& c = nodes.add("c");
  Collected<std::int32_t> got;
  const auto sink = b.system().spawn([&](caf::event_based_actor*) -> caf::behavior {
    return {[&](std::int32_t x) { got.add(x); }};
  });
  const auto at_b = reach(c, b, sink);
  const auto source =
      reach(c, a, a.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
        return {[self](const caf::actor& whom) {
          for (std::int32_t i = 0; i < 1000; ++i) self->send(whom, i);
        }};
      }));
  nodes.network.hold(a.id);  // on_connected waits there while all of it is queued
  caf::scoped_actor self{c.system()};
  self->send(source, at_b);
  nodes.network.release(a.id);
  const auto order = got.wait(1000);
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(LossOnAFakeNetwork, ASendThatFailsAnswersTheRequestWithTheReason) {
  RemotingFixture nodes{Network::fake};
  auto& a = nodes.add("a");
  auto& b = nodes.add("b");
  const auto remote = reach(a, b, b.system().spawn(echo));
  caf::scoped_actor self{a.system()};
  a.fake->fail_sends({Code::invalid_argument, "too large by far"});
  auto answer = ask<std::int32_t>(self, remote, std::int32_t{1});
  EXPECT_EQ(answer.code(), Code::invalid_argument);
  EXPECT_EQ(answer.error().message, "too large by far");
  // One that stayed full has lost a message: the peer is given up.
  Collected<caf::error> downs;
  const auto held = a.system().spawn([&, remote](caf::event_based_actor* actor) -> caf::behavior {
    actor->monitor(remote);
    actor->set_down_handler([&](caf::down_msg& x) { downs.add(x.reason); });
    return {[](std::int32_t) {}};
  });
  a.fake->fail_sends({Code::resource_exhausted, "the queue stayed full"});
  answer = ask<std::int32_t>(self, remote, std::int32_t{1});
  EXPECT_EQ(answer.code(), Code::resource_exhausted);
  EXPECT_EQ(downs.wait(1).size(), 1u);
}

TEST(LossOnAFakeNetwork, TwoNodesThatConnectAtOnceKeepOrderAndMayDropOneConnection) {
  RemotingFixture nodes{Network::fake};
  auto& a = nodes.add("a");
  auto& b = nodes.add("b");
  Collected<std::int32_t> got;
  const auto remote = reach(a, b, b.system().spawn([&](caf::event_based_actor*) -> caf::behavior {
    return {[&](std::int32_t x) {
      got.add(x);
      return x;
    }};
  }));
  // A second connection, from the other side.
  std::promise<void> met;
  b.transport->connect(a.address, [&](Result<transport::PeerId> r) {
    EXPECT_TRUE(r.ok());
    met.set_value();
  });
  met.get_future().wait();
  caf::scoped_actor self{a.system()};
  for (std::int32_t i = 0; i < 100; ++i) self->send(remote, i);
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{100}).value(), 100);
  // The first of a's is closed: the other one takes over, and nothing is lost.
  const auto peers = a.fake->peers();
  ASSERT_EQ(peers.size(), 2u);
  a.transport->close(peers[0]);
  while (a.fake->peers().size() != 1) std::this_thread::yield();
  a.fake->settle();  // until it has heard of it, a send fails
  for (std::int32_t i = 101; i < 200; ++i) EXPECT_EQ(ask<std::int32_t>(self, remote, i).value(), i);
  const auto order = got.wait(200);
  EXPECT_EQ(order.size(), 200u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

}  // namespace
}  // namespace troupe::remoting
