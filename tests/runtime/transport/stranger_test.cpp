// What a process that is no node, or another kind of node, can do to a listening transport.
#include <random>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/transport/internal/control_channel.hpp"
#include "runtime/transport/internal/handshake.hpp"
#include "tests/runtime/transport/transport_fixture.hpp"

namespace troupe::transport {
namespace {

/// A plain TCP client.
class Stranger {
public:
  explicit Stranger(const Address& address) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Stranger() { ::close(fd_); }
  void say(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;  // closed on us: as it should be
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  /// The next control message; nothing if the other side closed.
  std::optional<Bytes> hear() {
    for (;;) {
      auto message = parser_.next();
      if (message.ok() && *message) return std::move(**message);
      std::byte chunk[1024];
      const auto n = ::recv(fd_, chunk, sizeof chunk, 0);
      if (n <= 0) return std::nullopt;
      parser_.push({chunk, static_cast<std::size_t>(n)});
    }
  }
  bool is_dropped() { return !hear(); }

private:
  int fd_;
  ControlParser parser_;
};

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
  Greeting greeting() {
    Greeting greeting;
    greeting.node = NodeId::random();
    greeting.name = "stranger";
    greeting.build = "some build";
    return greeting;
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
  Handshake handshake(Handshake::Role::connector, greeting(), "secret");
  stranger.say(ControlParser::wrap(handshake.start()));
  ASSERT_TRUE(stranger.hear());  // its hello
  stranger.hear();               // the refusal
  EXPECT_TRUE(stranger.is_dropped());
  expect_working();
}

TEST_F(StrangerTest, AnotherVersionIsToldBothVersions) {
  Stranger stranger(address);
  Greeting newer = greeting();
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
  Handshake handshake(Handshake::Role::connector, greeting(), "");
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

/// A TCP port that a test answers by hand.
struct Port {
  Port() : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
    address = {"127.0.0.1", ntohs(at.sin_port)};
  }
  ~Port() { ::close(fd); }
  int fd;
  Address address;
};

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
    const int client = ::accept(port.fd, nullptr, nullptr);
    const char banner[] = "SSH-2.0-OpenSSH_9.2\r\n";
    EXPECT_GT(::send(client, banner, sizeof banner, MSG_NOSIGNAL), 0);
    char sink[256];
    while (::recv(client, sink, sizeof sink, 0) > 0) {
    }
    ::close(client);
  });
  EXPECT_EQ(node.connect(port.address).code(), Code::protocol_error);
  server.join();
}

}  // namespace
}  // namespace troupe::transport
