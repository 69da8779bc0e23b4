// Actors of several processes, and what happens when one is killed.
#include <cstdio>
#include <cstring>
#include <numeric>

#include <caf/all.hpp>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/runtime/remoting/remoting_fixture.hpp"
#include "tests/support/child_process.hpp"

namespace troupe::remoting {
namespace {

/// Where a process listens, as "node port" on one line.
struct Place {
  NodeId node;
  transport::Address address;
};

struct Counted {
  std::map<std::int32_t, std::int32_t> next;
  std::int32_t wrong = 0, count = 0;
};

/// What the children do for the tests.
caf::behavior servant(caf::stateful_actor<Counted>* self) {
  return {
      [](std::int32_t x) { return x; },
      [](const Buffer& x) { return x; },
      // Never answered.
      [self](const std::string&) { return self->make_response_promise<std::int32_t>(); },
      // Asked of a third process.
      [self](const caf::actor& whom, std::int32_t x) {
        auto promise = self->make_response_promise<std::int32_t>();
        self->request(whom, caf::infinite, x).then([promise](std::int32_t y) mutable {
          promise.deliver(y + 1000);
        });
        return promise;
      },
      // One of several ordered streams.
      [self](std::int32_t who, std::int32_t number) {
        if (self->state.next[who]++ != number) ++self->state.wrong;
        ++self->state.count;
      },
      [self](caf::get_atom) { return caf::make_message(self->state.count, self->state.wrong); },
  };
}

/// A node over UCX that finds what it was told of.
struct Process {
  explicit Process(const std::string& name, const std::string& tls, std::vector<Place> known = {})
      : places(std::move(known)) {
    transport::Options wire;
    wire.node = NodeId::random();
    wire.name = name;
    wire.tls = tls;
    transport = transport::make_ucx_transport(wire).value();
    Options options;
    options.node = place.node = wire.node;
    options.configure = know_types;
    remoting = make_remoting(std::move(options), *transport).value();
    remoting->set_resolver([this](NodeId node) -> std::optional<transport::Address> {
      for (const auto& p : places)
        if (p.node == node) return p.address;
      return std::nullopt;
    });
    EXPECT_TRUE(transport->start().ok());
    place.address = transport->listen({"127.0.0.1", 0}).value();
  }
  ~Process() {
    remoting->stop();
    transport->stop();
    remoting.reset();
  }

  Place place;
  std::vector<Place> places;  ///< before the first message
  std::unique_ptr<transport::Transport> transport;
  std::unique_ptr<Remoting> remoting;
};

int serve(const std::string& tls, const std::vector<Place>& known) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Process process("child", tls, known);
  if (!process.remoting->register_name("servant", process.remoting->system().spawn(servant)).ok())
    return 1;
  std::printf("%s %u\n", to_string(process.place.node).c_str(), process.place.address.port);
  std::fflush(stdout);
  for (;;) ::pause();
}

class Child : public ChildProcess {
public:
  explicit Child(const std::string& tls, const std::vector<Place>& known = {})
      : ChildProcess(arguments(tls, known)) {
    char node[64] = {};
    unsigned port = 0;
    EXPECT_EQ(std::sscanf(line().c_str(), "%63s %u", node, &port), 2);
    place = {NodeId::parse(node).value(), {"127.0.0.1", static_cast<std::uint16_t>(port)}};
  }
  Place place;

private:
  static std::vector<std::string> arguments(const std::string& tls,
                                            const std::vector<Place>& known) {
    std::vector<std::string> words = {tls};
    for (const auto& p : known) {
      words.push_back(to_string(p.node));
      words.push_back(std::to_string(p.address.port));
    }
    return words;
  }
};

class Processes : public testing::TestWithParam<const char*> {
protected:
  std::string tls() const { return GetParam(); }
  static caf::actor servant_of(Process& from, const Child& child) {
    const auto found = from.remoting->lookup(child.place.node, "servant", kPatience);
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : to_string(found.error()));
    return found.ok() ? *found : caf::actor{};
  }
};

INSTANTIATE_TEST_SUITE_P(Over, Processes, testing::Values("tcp,self", "all"), [](const auto& tls) {
  return std::string(tls.param) == "all" ? "all" : "tcp";
});

TEST_P(Processes, ARequestInFlightToAKilledProcessFailsAtOnceWithDownAndExit) {
  Child child(tls());
  Process parent("parent", tls(), {child.place});
  const auto remote = servant_of(parent, child);
  Collected<caf::error> errors, downs, exits;
  const auto watcher =
      parent.remoting->system().spawn([&, remote](caf::event_based_actor* self) -> caf::behavior {
        self->monitor(remote);
        self->link_to(remote);
        self->set_down_handler([&](caf::down_msg& x) { downs.add(x.reason); });
        self->set_exit_handler([&](caf::exit_msg& x) { exits.add(x.reason); });
        self->request(remote, caf::infinite, std::string("never"))
            .then([](std::int32_t) { ADD_FAILURE(); }, [&](caf::error& x) { errors.add(x); });
        self->request(remote, caf::infinite, std::int32_t{5}).then([](std::int32_t) {});
        return {[](std::int32_t x) { return x; }};
      });
  caf::scoped_actor self{parent.remoting->system()};
  EXPECT_EQ(ask<std::int32_t>(self, watcher, std::int32_t{1}).value(), 1);
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).value(), 1);
  child.kill();
  for (auto* got : {&errors, &downs, &exits}) {
    ASSERT_EQ(got->wait(1).size(), 1u);
    EXPECT_EQ(got->wait(1)[0], caf::exit_reason::remote_link_unreachable);
  }
  EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).code(), Code::unavailable);
  EXPECT_EQ(downs.size(), 1u);
  EXPECT_EQ(exits.size(), 1u);
  caf::anon_send_exit(watcher, caf::exit_reason::kill);
}

TEST_P(Processes, AHandleGoesThroughThreeProcesses) {
  Child third(tls());
  Child second(tls(), {third.place});
  Process first("first", tls(), {second.place, third.place});
  const auto at_third = servant_of(first, third);
  const auto at_second = servant_of(first, second);
  caf::scoped_actor self{first.remoting->system()};
  // The second asks the third, which it has never met; then one of the first's own.
  EXPECT_EQ(ask<std::int32_t>(self, at_second, at_third, std::int32_t{7}).value(), 1007);
  const auto own = first.remoting->system().spawn(echo);
  EXPECT_EQ(ask<std::int32_t>(self, at_second, own, std::int32_t{8}).value(), 1008);
}

TEST_P(Processes, TenThousandMessagesOfEachOfSeveralSendersArriveInOrder) {
  Child child(tls());
  Process parent("parent", tls(), {child.place});
  const auto remote = servant_of(parent, child);
  std::vector<std::thread> senders;
  for (std::int32_t who = 0; who < 4; ++who)
    senders.emplace_back([&, who] {
      caf::scoped_actor self{parent.remoting->system()};
      for (std::int32_t i = 0; i < 10'000; ++i) self->send(remote, who, i);
      EXPECT_EQ(ask<std::int32_t>(self, remote, who).value(), who);
    });
  for (auto& sender : senders) sender.join();
  caf::scoped_actor self{parent.remoting->system()};
  self->request(remote, kPatience, caf::get_atom::value)
      .receive(
          [](std::int32_t count, std::int32_t wrong) {
            EXPECT_EQ(count, 40'000);
            EXPECT_EQ(wrong, 0);
          },
          [](const caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
}

TEST_P(Processes, BuffersUpTo64MiBComeBackUnchanged) {
  Child child(tls());
  Process parent("parent", tls(), {child.place});
  const auto remote = servant_of(parent, child);
  caf::scoped_actor self{parent.remoting->system()};
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{64} << 20}) {
    auto sent = Buffer::allocate(bytes).value();
    for (std::size_t i = 0; i < bytes; i += 8) std::memcpy(sent.data() + i, &i, 8);
    const auto got = ask<Buffer>(self, remote, sent);
    ASSERT_TRUE(got.ok()) << to_string(got.error());
    ASSERT_EQ(got->size(), bytes);
    EXPECT_EQ(std::memcmp(got->data(), sent.data(), bytes), 0);
  }
}

TEST_P(Processes, ActorsAreSpawnedInAnotherProcess) {
  Child child(tls());
  Process parent("parent", tls(), {child.place});
  const auto made = parent.remoting->spawn(child.place.node, "adder",
                                           caf::make_message(std::int32_t{3}), kPatience);
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  caf::scoped_actor self{parent.remoting->system()};
  EXPECT_EQ(ask<std::int32_t>(self, *made, std::int32_t{4}).value(), 7);
  EXPECT_EQ(parent.remoting->spawn(child.place.node, "dragon", {}, kPatience).code(),
            Code::not_found);
  EXPECT_EQ(parent.remoting->lookup(child.place.node, "nobody", kPatience).code(), Code::not_found);
}

}  // namespace

int run_child(int argc, char** argv) {
  std::vector<Place> known;
  for (int i = 3; i + 1 < argc; i += 2)
    known.push_back({NodeId::parse(argv[i]).value(),
                     {"127.0.0.1", static_cast<std::uint16_t>(std::atoi(argv[i + 1]))}});
  return serve(argv[2], known);
}

}  // namespace troupe::remoting

int main(int argc, char** argv) {
  if (argc >= 3 && std::strcmp(argv[1], "--child") == 0)
    return troupe::remoting::run_child(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
