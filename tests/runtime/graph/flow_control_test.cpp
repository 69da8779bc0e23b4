// Actors that are connected by hand, so that the test decides when values are consumed.
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/ports.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::graph {
namespace {

using testing::ElementsAre;

// What the tests say to the actors, and hear from them. All stay in one process.
using Try = caf::atom_constant<caf::atom("try")>;        // send until there is no credit
using TryOne = caf::atom_constant<caf::atom("tryone")>;  // (replica): send_to
using End = caf::atom_constant<caf::atom("end")>;        // finish
using Consumed =
    caf::atom_constant<caf::atom("consumed")>;  // (count): consume values that are held
using InFlight = caf::atom_constant<caf::atom("inflight")>;
using Got = caf::atom_constant<caf::atom("got")>;
using IsReady = caf::atom_constant<caf::atom("ready")>;
using IsLost = caf::atom_constant<caf::atom("lost")>;
using IsFinished = caf::atom_constant<caf::atom("finished")>;

struct State {
  explicit State(caf::event_based_actor* self) : ports(self) {}
  Ports ports;
  int next = 0;
  std::vector<Origin> held;
  std::vector<int> values;
};
using Self = caf::stateful_actor<State>;

void report_losses(Self* self, const caf::actor& observer) {
  self->state.ports.on_peer_lost([self, observer](const PeerLost& lost) {
    self->send(observer, IsLost::value, lost.port, lost.replica, lost.in_flight);
  });
}

/// Counts up from 0. Answers Try with how many it could send.
caf::behavior producer(Self* self, const caf::actor& observer) {
  auto& out = self->state.ports.output<int>("out");
  out.on_ready([=] { self->send(observer, IsReady::value); });
  report_losses(self, observer);
  return self->state.ports.handlers().or_else(
      [self, &out](Try) {
        int sent = 0;
        while (out.ready()) {
          EXPECT_TRUE(out.send(self->state.next++).ok());
          ++sent;
        }
        EXPECT_FALSE(out.send(-1).ok());
        return sent;
      },
      [self, &out](TryOne, std::uint32_t replica) {
        return static_cast<int>(out.send_to(replica, self->state.next++).code());
      },
      [&out](End) { out.finish(); },
      [&out](InFlight) { return static_cast<int>(out.in_flight()); });
}

/// Keeps what it gets and consumes it when told to. Answers Got with all values so far.
caf::behavior slow_consumer(Self* self, const caf::actor& observer) {
  auto& state = self->state;
  auto& in = state.ports.input<int>(
      "in",
      [&state](int value, const Origin& from) {
        state.values.push_back(value);
        state.held.push_back(from);
      },
      Consume::by_hand);
  in.on_finished([=] { self->send(observer, IsFinished::value); });
  report_losses(self, observer);
  return state.ports.handlers().or_else(
      [&state, &in](Consumed, int count) {
        for (int i = 0; i < count; ++i) {
          in.consumed(state.held.front());
          state.held.erase(state.held.begin());
        }
      },
      [&state](Got) { return state.values; });
}

struct FlowControl : testing::Test {
  caf::actor spawn_producer() { return system.spawn(producer, observer()); }
  caf::actor spawn_consumer() { return system.spawn(slow_consumer, observer()); }
  caf::actor observer() { return caf::actor_cast<caf::actor>(self.ptr()); }

  /// Tells both ends of one edge; replicas are numbered by their order.
  void connect(const std::vector<caf::actor>& from, const std::vector<caf::actor>& to,
               std::uint32_t capacity, Pattern pattern = Pattern::one_to_one,
               std::uint32_t edge = 0) {
    const auto peers = [](const std::vector<caf::actor>& actors) {
      std::vector<Peer> result;
      for (const auto& actor : actors)
        result.push_back({static_cast<std::uint32_t>(result.size()), actor});
      return result;
    };
    for (std::uint32_t i = 0; i < to.size(); ++i)
      tell(to[i], Connected{"in", false, edge, pattern, capacity, i, peers(from)});
    for (std::uint32_t i = 0; i < from.size(); ++i)
      tell(from[i], Connected{"out", true, edge, pattern, capacity, i, peers(to)});
  }

  /// A request without result; the empty string, or the error's sentence.
  template <class... Ts>
  std::string tell(const caf::actor& actor, Ts... message) {
    std::string result;
    self->request(actor, caf::infinite, std::move(message)...)
        .receive([] {}, [&](const caf::error& e) { result = remoting::from_caf(e).message; });
    return result;
  }

  template <class R, class... Ts>
  R ask(const caf::actor& actor, Ts... message) {
    R result{};
    self->request(actor, caf::infinite, std::move(message)...)
        .receive([&](const R& r) { result = r; },
                 [](const caf::error& e) { ADD_FAILURE() << caf::to_string(e); });
    return result;
  }
  int send_all(const caf::actor& actor) { return ask<int>(actor, Try::value); }
  std::vector<int> got(const caf::actor& actor) { return ask<std::vector<int>>(actor, Got::value); }

  void await_ready() {
    self->receive([](IsReady) {});
  }

  void kill(const caf::actor& actor) {
    self->monitor(actor);
    caf::anon_send_exit(actor, caf::exit_reason::kill);
    self->receive([](const caf::down_msg&) {});
  }

  caf::actor_system_config config = [] {
    caf::actor_system_config c;
    c.set("scheduler.max-threads", 2u);
    return c;
  }();
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  std::vector<caf::actor> spawned;
};

/// One producer, one consumer, capacity 4.
struct OnePair : FlowControl {
  OnePair() { connect({from}, {to}, 4); }
  ~OnePair() override {
    self->send_exit(from, caf::exit_reason::user_shutdown);
    self->send_exit(to, caf::exit_reason::user_shutdown);
  }
  caf::actor from = spawn_producer();
  caf::actor to = spawn_consumer();
};

TEST_F(OnePair, a_slow_consumer_holds_no_more_than_the_capacity) {
  EXPECT_EQ(send_all(from), 4);
  EXPECT_EQ(send_all(from), 0);
  EXPECT_THAT(got(to), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(ask<int>(from, InFlight::value), 4);
}

TEST_F(OnePair, the_producer_goes_on_when_a_batch_of_credit_is_back) {
  EXPECT_EQ(send_all(from), 4);
  tell(to, Consumed::value, 1);  // not yet half the capacity
  EXPECT_EQ(send_all(from), 0);
  tell(to, Consumed::value, 1);
  await_ready();
  EXPECT_EQ(send_all(from), 2);
  EXPECT_THAT(got(to), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(OnePair, the_bound_holds_for_any_number_of_values) {
  int sent = send_all(from), consumed = 0;
  while (consumed < 1000) {
    const int held = static_cast<int>(got(to).size()) - consumed;
    ASSERT_LE(held, 4);
    ASSERT_EQ(sent, consumed + held);
    tell(to, Consumed::value, held);
    consumed += held;
    await_ready();
    sent += send_all(from);
  }
  const auto values = got(to);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i);
}

TEST_F(OnePair, the_loss_of_the_consumer_releases_the_producer) {
  EXPECT_EQ(send_all(from), 4);
  kill(to);
  self->receive(
      [](IsLost, const std::string& port, std::uint32_t replica, std::uint32_t in_flight) {
        EXPECT_EQ(port, "out");
        EXPECT_EQ(replica, 0u);
        EXPECT_EQ(in_flight, 4u);
      });
  EXPECT_EQ(ask<int>(from, InFlight::value), 0);
  EXPECT_EQ(ask<int>(from, TryOne::value, std::uint32_t{0}), static_cast<int>(Code::unavailable));
}

TEST_F(OnePair, the_consumer_is_told_when_the_producer_has_finished) {
  EXPECT_EQ(send_all(from), 4);
  tell(from, End::value);
  self->receive([](IsFinished) {});
  EXPECT_THAT(got(to), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(ask<int>(from, TryOne::value, std::uint32_t{0}),
            static_cast<int>(Code::failed_precondition));
}

TEST_F(OnePair, the_consumer_is_told_of_a_lost_producer) {
  EXPECT_EQ(send_all(from), 4);
  EXPECT_EQ(got(to).size(), 4u);
  kill(from);
  bool lost = false, finished = false;
  while (!lost || !finished)
    self->receive(
        [&](IsLost, const std::string& port, std::uint32_t, std::uint32_t) {
          EXPECT_EQ(port, "in");
          lost = true;
        },
        [&](IsFinished) { finished = true; });
  tell(to, Consumed::value, 4);  // credit of nobody
}

TEST_F(OnePair, a_producer_that_sends_without_credit_ends_the_consumer) {
  self->monitor(to);
  for (std::uint64_t i = 0; i < 5; ++i) self->send(to, Delivery{0, 0, i}, 7);
  self->receive([](const caf::down_msg& down) {
    EXPECT_EQ(
        remoting::from_caf(down.reason).message,
        "port 'in' broke the protocol: value 4 arrived without credit: the edge's capacity is "
        "4");
  });
}

TEST_F(OnePair, a_value_of_another_type_is_not_taken) {
  self->request(to, caf::infinite, Delivery{0, 0, 0}, std::string("seven"))
      .receive([] { ADD_FAILURE() << "taken"; },
               [](const caf::error& e) { EXPECT_EQ(e, caf::sec::unexpected_message); });
}

TEST_F(OnePair, credit_for_what_was_not_sent_ends_the_producer) {
  self->monitor(from);
  self->send(from, Credit{0, 0, 1});
  self->receive([](const caf::down_msg& down) {
    EXPECT_EQ(remoting::from_caf(down.reason).code, Code::protocol_error);
  });
}

TEST_F(OnePair, a_port_that_is_not_there_is_not_connected) {
  EXPECT_EQ(tell(from, Connected{"exit", true, 1, Pattern::local, 1, 0, {}}),
            "the actor has no output 'exit'");
  EXPECT_EQ(tell(from, Connected{"in", false, 1, Pattern::local, 1, 0, {}}),
            "the actor has no input 'in'");
  EXPECT_EQ(tell(from, Connected{"out", true, 0, Pattern::local, 1, 0, {}}),
            "port 'out' is connected to edge 0 already");
  EXPECT_EQ(tell(from, Connected{"out", true, 1, Pattern::local, 0, 0, {}}),
            "port 'out' would be connected with capacity 0");
}

/// One producer, three consumers, capacity 2.
struct OneToThree : FlowControl {
  ~OneToThree() override {
    self->send_exit(from, caf::exit_reason::user_shutdown);
    for (const auto& c : to) self->send_exit(c, caf::exit_reason::user_shutdown);
  }
  caf::actor from = spawn_producer();
  std::vector<caf::actor> to{spawn_consumer(), spawn_consumer(), spawn_consumer()};
};

TEST_F(OneToThree, all_to_all_gives_each_value_to_the_next_that_has_room) {
  connect({from}, to, 2, Pattern::all_to_all);
  EXPECT_EQ(send_all(from), 6);
  EXPECT_THAT(got(to[0]), ElementsAre(0, 3));
  EXPECT_THAT(got(to[1]), ElementsAre(1, 4));
  EXPECT_THAT(got(to[2]), ElementsAre(2, 5));
  tell(to[1], Consumed::value, 2);
  await_ready();
  while (ask<int>(from, InFlight::value) > 4) {
  }
  EXPECT_EQ(send_all(from), 2);
  EXPECT_THAT(got(to[1]), ElementsAre(1, 4, 6, 7));
}

TEST_F(OneToThree, a_value_may_be_addressed_to_one_replica) {
  connect({from}, to, 2, Pattern::all_to_all);
  const auto send_to = [&](std::uint32_t r) {
    return static_cast<Code>(ask<int>(from, TryOne::value, r));
  };
  EXPECT_EQ(send_to(2), Code::ok);
  EXPECT_EQ(send_to(2), Code::ok);
  EXPECT_EQ(send_to(2), Code::resource_exhausted);
  EXPECT_EQ(send_to(3), Code::not_found);
  EXPECT_THAT(got(to[2]), ElementsAre(0, 1));
}

TEST_F(OneToThree, broadcast_gives_each_value_to_all_and_waits_for_the_slowest) {
  connect({from}, to, 2, Pattern::broadcast);
  EXPECT_EQ(send_all(from), 2);
  for (const auto& consumer : to) EXPECT_THAT(got(consumer), ElementsAre(0, 1));
  tell(to[0], Consumed::value, 2);
  tell(to[1], Consumed::value, 2);
  while (ask<int>(from, InFlight::value) > 2) {
  }
  EXPECT_EQ(send_all(from), 0);
  kill(to[2]);  // the slowest is gone, and holds nobody up
  await_ready();
  EXPECT_EQ(send_all(from), 2);
  EXPECT_THAT(got(to[0]), ElementsAre(0, 1, 2, 3));
}

TEST_F(OneToThree, the_loss_of_one_consumer_leaves_the_others_the_work) {
  connect({from}, to, 2, Pattern::all_to_all);
  EXPECT_EQ(send_all(from), 6);
  kill(to[0]);
  self->receive([](IsLost, const std::string&, std::uint32_t replica, std::uint32_t in_flight) {
    EXPECT_EQ(replica, 0u);
    EXPECT_EQ(in_flight, 2u);
  });
  tell(to[1], Consumed::value, 2);
  tell(to[2], Consumed::value, 2);
  while (ask<int>(from, InFlight::value) > 0) {
  }
  EXPECT_EQ(send_all(from), 4);
}

TEST_F(OneToThree, an_output_with_two_edges_waits_for_both) {
  connect({from}, {to[0]}, 3, Pattern::one_to_one, 0);
  connect({from}, {to[1]}, 2, Pattern::one_to_one, 1);
  EXPECT_EQ(send_all(from), 2);
  EXPECT_THAT(got(to[0]), ElementsAre(0, 1));
  EXPECT_THAT(got(to[1]), ElementsAre(0, 1));
}

TEST_F(OneToThree, an_input_counts_each_producer_by_itself) {
  auto second = spawn_producer();
  connect({from, second}, {to[0]}, 2, Pattern::gather);
  EXPECT_EQ(send_all(from), 2);
  EXPECT_EQ(send_all(second), 2);
  EXPECT_THAT(got(to[0]), testing::UnorderedElementsAre(0, 1, 0, 1));
  self->send_exit(second, caf::exit_reason::user_shutdown);
}

TEST_F(OneToThree, an_output_that_is_not_connected_says_so) {
  EXPECT_EQ(send_all(from), 0);
  EXPECT_EQ(ask<int>(from, TryOne::value, std::uint32_t{0}),
            static_cast<int>(Code::failed_precondition));
}

}  // namespace
}  // namespace troupe::graph
