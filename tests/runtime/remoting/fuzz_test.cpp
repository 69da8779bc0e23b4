// A peer that sends whatever it likes: each time either it is understood, or that peer is closed
// with a reason, and nobody else notices.
#include <random>

#include <caf/all.hpp>

#include "runtime/remoting/internal/envelope.hpp"
#include "runtime/remoting/internal/sender.hpp"
#include "tests/runtime/remoting/remoting_fixture.hpp"

namespace troupe::remoting {
namespace {

/// Node `b`, reached by a well-behaved `a` and by a stranger that the test speaks for.
class Fuzz : public testing::Test {
protected:
  void SetUp() override {
    stranger_transport.set_handler(transport::Channel::actors, deaf);
    ASSERT_TRUE(stranger_transport.start().ok());
    target = b.system().spawn(echo);
    remote = reach(a, b, target);
  }
  void TearDown() override { stranger_transport.stop(); }

  /// The stranger's own id for its connection to b.
  transport::PeerId connect() {
    std::promise<transport::PeerId> made;
    stranger_transport.connect(b.address,
                               [&](Result<transport::PeerId> r) { made.set_value(r.value()); });
    return made.get_future().get();
  }
  void send(transport::PeerId peer, const std::vector<std::byte>& bytes,
            std::vector<Buffer> segments = {}) {
    (void)stranger_transport.send(peer, transport::Channel::actors, bytes, {}, std::move(segments));
  }
  static std::vector<std::byte> frame(Envelope envelope, std::span<const std::byte> body) {
    Head head;
    encode(envelope, static_cast<std::uint32_t>(body.size()), head);
    std::vector<std::byte> bytes(head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
  }
  /// A message as a well-behaved node would write it.
  template <class... Ts>
  std::vector<std::byte> message(std::vector<Buffer>& segments, const Ts&... xs) {
    caf::scoped_execution_unit context{&a.system()};
    SendLease lease(a.id);
    const auto element = caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, xs...);
    EXPECT_FALSE(write_message(context, a.system().node(), *lease, *element));
    segments = lease->segments;
    return frame({.kind = Kind::message, .source = 1, .destination = target.id()},
                 lease->scratch.bytes());
  }
  /// Waits until b has closed the connection.
  Error closed() {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (stranger_transport.losses().empty() && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    const auto losses = stranger_transport.losses();
    return losses.empty() ? Error{Code::ok, "not closed"} : losses.back();
  }
  void expect_unharmed() {
    caf::scoped_actor self{a.system()};
    EXPECT_EQ(ask<std::int32_t>(self, remote, std::int32_t{1}).value(), 1);
  }

  struct Deaf final : transport::Handler {
    void on_connected(transport::PeerId, const transport::PeerInfo&) override {}
    void on_message(transport::PeerId, std::span<const std::byte>, std::span<Buffer>) override {}
    void on_lost(transport::PeerId, const Error&) override {}
  };
  static transport::Options stranger_options() {
    transport::Options options;
    options.node = NodeId::random();
    return options;
  }

  RemotingFixture nodes{Network::fake};
  TestNode& a = nodes.add("a");
  TestNode& b = nodes.add("b");
  Deaf deaf;
  FakeTransport stranger_transport{nodes.network, stranger_options()};
  caf::actor target, remote;
};

TEST_F(Fuzz, BytesThatAreNoEnvelopeCloseThePeerWithAReason) {
  send(connect(), std::vector<std::byte>(100, std::byte{0x5a}));
  const auto error = closed();
  EXPECT_EQ(error.code, Code::protocol_error);
  EXPECT_NE(error.message.find("broke the protocol"), std::string::npos) << error.message;
  expect_unharmed();
}

TEST_F(Fuzz, AnUnknownTypeNameClosesThePeerWithThatName) {
  std::vector<Buffer> segments;
  auto bytes = message(segments, std::int32_t{1});
  const std::string known = "@i32", unknown = "@xyz";
  auto at = std::search(bytes.begin(), bytes.end(), known.begin(), known.end(),
                        [](std::byte x, char y) { return x == static_cast<std::byte>(y); });
  ASSERT_NE(at, bytes.end());
  std::transform(unknown.begin(), unknown.end(), at, [](char c) { return std::byte(c); });
  send(connect(), bytes);
  const auto error = closed();
  EXPECT_EQ(error.code, Code::protocol_error);
  EXPECT_NE(error.message.find("@xyz"), std::string::npos) << error.message;
  expect_unharmed();
}

TEST_F(Fuzz, AnEmptyBodyAndBytesLeftOverCloseThePeer) {
  for (const std::size_t extra : {0, 100}) {
    std::vector<Buffer> segments;
    auto bytes = message(segments, std::int32_t{1});
    std::vector<std::byte> body(bytes.begin() + kHeadBytes, bytes.end());
    body.resize(extra != 0 ? body.size() + extra : 0);
    send(connect(), frame({.kind = Kind::message, .source = 1, .destination = target.id()}, body));
    EXPECT_EQ(closed().code, Code::protocol_error);
  }
  expect_unharmed();
}

TEST_F(Fuzz, AMessageIdOfAStreamClosesThePeer) {
  std::vector<Buffer> segments;
  const auto bytes = message(segments, std::int32_t{1});
  for (const auto category :
       {caf::message_id::upstream_message_category, caf::message_id::downstream_message_category}) {
    send(connect(),
         frame({.kind = Kind::message,
                .source = 1,
                .destination = target.id(),
                .message_id = caf::make_message_id().with_category(category).integer_value()},
               std::span(bytes).subspan(kHeadBytes)));
    EXPECT_EQ(closed().code, Code::protocol_error);
  }
  expect_unharmed();
}

TEST_F(Fuzz, MessagesToActorsThatAreNotThereAreDropped) {
  std::vector<Buffer> segments;
  const auto bytes = message(segments, std::int32_t{1});
  const auto peer = connect();
  for (std::uint64_t id : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}})
    for (int kind = 0; kind <= static_cast<int>(Kind::exit); ++kind)
      send(peer, frame({.kind = static_cast<Kind>(kind), .source = id, .destination = id},
                       std::span(bytes).subspan(kHeadBytes)));
  expect_unharmed();
}

TEST_F(Fuzz, MutatedFramesHarmNobody) {
  std::mt19937 random(20'240'601);
  std::vector<std::pair<std::vector<std::byte>, std::vector<Buffer>>> seeds;
  const auto seed = [&](const auto&... xs) {
    std::vector<Buffer> segments;
    auto bytes = message(segments, xs...);
    seeds.emplace_back(std::move(bytes), std::move(segments));
  };
  seed(std::int32_t{7});
  seed(std::string("hello"));
  seed(Sample{"x", {1, 2, 3}, {{"k", 7}}, {true, false}});
  seed(Bundle{filled(5000, 1), {filled(10, 2), filled(7000, 3)}});
  seed(std::int32_t{1}, caf::make_message(std::string("deep"), filled(4096, 1), target));
  seed(caf::exit_msg{target.address(), caf::make_error(caf::sec::unexpected_message)});
  seed(std::vector<caf::actor>{target, remote}, std::vector<char>(100, 'x'));
  {
    Scratch scratch;
    std::vector<Buffer> none;
    caf::scoped_execution_unit context{&a.system()};
    WireWriter sink{&context, scratch, none};
    sink.write_string("adder");
    sink.write_string("@i32");
    std::int32_t by = 1;
    EXPECT_FALSE(sink(by));
    seeds.emplace_back(frame({.kind = Kind::spawn, .message_id = 5}, scratch.bytes()), none);
    scratch.clear();
    auto reason = to_caf(Error{Code::internal, "down"});
    EXPECT_FALSE(sink(reason));
    seeds.emplace_back(frame({.kind = Kind::down, .source = 1}, scratch.bytes()), none);
  }
  auto peer = connect();
  for (int round = 0; round < 20'000; ++round) {
    auto [bytes, segments] = seeds[random() % seeds.size()];
    switch (random() % 5) {
      case 0:
        bytes.resize(random() % (bytes.size() + 1));
        break;
      case 1:
        bytes.resize(bytes.size() + random() % 16, std::byte{0});
        break;
      case 2:
        if (!segments.empty()) segments.pop_back();
        break;
      default:
        break;
    }
    const auto flips = 1 + random() % 4;
    for (unsigned i = 0; i < flips && !bytes.empty(); ++i) {
      // Mostly the body: a broken head says little.
      const auto at = random() % 4 == 0 || bytes.size() <= kHeadBytes
                          ? random() % bytes.size()
                          : kHeadBytes + random() % (bytes.size() - kHeadBytes);
      bytes[at] = static_cast<std::byte>(random());
    }
    send(peer, bytes, std::move(segments));
    b.fake->settle();
    if (stranger_transport.peers().empty()) peer = connect();
  }
  EXPECT_GT(stranger_transport.losses().size(), 100u);
  // Some of it was understood, and may well have told the old one to end.
  remote = reach(a, b, b.system().spawn(echo));
  expect_unharmed();
}

}  // namespace
}  // namespace troupe::remoting
