// What a process that is no node, or another kind of node, can do to a listening transport.
#include "tests/runtime/transport/stranger.hpp"

#include <random>
#include <thread>

#include <fmt/format.h>
#include <sys/socket.h>

#include "tests/runtime/transport/transport_fixture.hpp"

namespace troupe::transport {
namespace {

struct StrangerTest : testing::Test {
  StrangerTest() : node(make_options()) {
    node.start();
    address = node.listen();
  }
  static Options make_options() {
    Options options = options_of("node");
    options.connect_timeout = std::chrono::milliseconds(200);
    options.token = "secret";
    return options;
  }
  void expect_working() {
    Options options = options_of("friend");
    options.token = "secret";
    Side guest(options);
    guest.start();
    const auto peer = guest.connect(address);
    ASSERT_TRUE(peer.ok()) << to_string(peer.error());
    ASSERT_TRUE(guest.send(*peer, "hello").ok());
    ASSERT_TRUE(node.recorder.wait_messages(node_messages += 1));
  }

  Side node;
  Address address;
  std::size_t node_messages = 0;
};

TEST_F(StrangerTest, RandomBytesDoNoHarm) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    Stranger stranger(address);
    Bytes bytes(random() % 2000);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    stranger.say(bytes);
  }
  expect_working();
}

TEST_F(StrangerTest, RandomControlMessagesDoNoHarm) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 200; ++round) {
    Stranger stranger(address);
    Bytes bytes(random() % 300);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() % (round % 2 == 0 ? 256 : 4));
    stranger.say(ControlParser::wrap(bytes));
    stranger.hear();  // a refusal or the end
  }
  expect_working();
}

TEST_F(StrangerTest, WhoSpeaksAnotherProtocolIsDroppedAtOnce) {
  Stranger stranger(address);
  stranger.say(bytes_of("GET / HTTP/1.1\r\n\r\n"));
  stranger.hear();
  EXPECT_TRUE(stranger.is_dropped());
}

TEST_F(StrangerTest, WhoSaysNothingIsDroppedAfterTheTimeout) {
  Stranger stranger(address);
  const auto refusal = stranger.hear();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(decode_refusal(*refusal)->code, Code::deadline_exceeded);
  EXPECT_TRUE(stranger.is_dropped());
  expect_working();
}

TEST_F(StrangerTest, HalfAHandshakeIsDroppedAfterTheTimeout) {
  Stranger stranger(address);
  Handshake handshake(Handshake::Role::connector, strange_greeting(), "secret");
  stranger.say(ControlParser::wrap(handshake.start()));
  ASSERT_TRUE(stranger.hear());  // its hello
  stranger.hear();               // the refusal
  EXPECT_TRUE(stranger.is_dropped());
  expect_working();
}

TEST_F(StrangerTest, AnotherVersionIsToldBothVersions) {
  Stranger stranger(address);
  Greeting newer = strange_greeting();
  newer.protocol = kProtocolVersion + 1;
  Handshake handshake(Handshake::Role::connector, newer, "secret");
  stranger.say(ControlParser::wrap(handshake.start()));
  const auto refusal = decode_refusal(stranger.hear().value());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, Code::version_mismatch);
  EXPECT_NE(refusal->message.find("version 1"), std::string::npos);
  EXPECT_NE(refusal->message.find("version 2"), std::string::npos);
}

TEST_F(StrangerTest, NothingIsHandledBeforeTheProofOfTheToken) {
  Stranger stranger(address);
  Handshake handshake(Handshake::Role::connector, strange_greeting(), "");
  stranger.say(ControlParser::wrap(handshake.start()));
  stranger.say(ControlParser::wrap(handshake.offer({Bytes(100, std::byte{1}), 1, 0, 0})));
  const auto refusal = decode_refusal(stranger.hear().value());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, Code::permission_denied);
  EXPECT_TRUE(node.recorder.connected().empty());
}

TEST_F(StrangerTest, ManySilentClientsDoNotKeepANodeOutForLong) {
  std::vector<std::unique_ptr<Stranger>> crowd;
  for (int i = 0; i < 300; ++i) crowd.push_back(std::make_unique<Stranger>(address));
  for (auto& stranger : crowd) {
    stranger->hear();
    EXPECT_TRUE(stranger->is_dropped());
  }
  expect_working();
}

TEST_F(StrangerTest, ConnectingToADeadPortIsUnavailable) {
  Port port;  // bound, but nobody listens
  const auto peer = node.connect(port.address);
  ASSERT_EQ(peer.code(), Code::unavailable);
  EXPECT_NE(peer.error().message.find(to_string(port.address)), std::string::npos);
}

TEST_F(StrangerTest, ConnectingToASilentPortEndsAtTheDeadline) {
  Port port;
  ::listen(port.fd, 1);
  const auto peer = node.connect(port.address);
  ASSERT_EQ(peer.code(), Code::deadline_exceeded);
  EXPECT_NE(peer.error().message.find(to_string(port.address)), std::string::npos);
}

TEST_F(StrangerTest, ConnectingToAnotherKindOfServerIsAnError) {
  Port port;
  ::listen(port.fd, 1);
  std::thread server([&] {
    Stranger client(port);
    client.say(bytes_of("SSH-2.0-OpenSSH_9.2\r\n"));
    client.hear();
  });
  EXPECT_EQ(node.connect(port.address).code(), Code::protocol_error);
  server.join();
}

}  // namespace
}  // namespace troupe::transport
