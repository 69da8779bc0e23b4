#include "runtime/transport/internal/handshake.hpp"

#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "runtime/transport/internal/control_channel.hpp"
#include "tests/runtime/transport/transport_fixture.hpp"

namespace troupe::transport {
namespace {

using Role = Handshake::Role;

Greeting greeting(const std::string& name, std::uint8_t nonce) {
  Greeting greeting;
  greeting.node = NodeId{nonce, 1};
  greeting.name = name;
  greeting.build = "Troupe test";
  greeting.nonce.fill(static_cast<std::byte>(nonce));
  greeting.process = nonce;
  greeting.listens_at = {"127.0.0.1", 4000};
  return greeting;
}

/// Two sides that talk until one refuses or nothing is left to say.
struct Talk {
  Talk(Greeting first, std::string first_token, Greeting second, std::string second_token)
      : connector(Role::connector, std::move(first), std::move(first_token)),
        acceptor(Role::acceptor, std::move(second), std::move(second_token)) {}

  void run() {
    Bytes message = connector.start();
    bool to_acceptor = true;
    while (!message.empty()) {
      Bytes reply;
      Handshake& side = to_acceptor ? acceptor : connector;
      const Status status = side.on_message(message, reply);
      if (!status.ok()) {
        (to_acceptor ? acceptor_error : connector_error) = status.error();
        Bytes none;
        Handshake& other = to_acceptor ? connector : acceptor;
        (to_acceptor ? connector_error : acceptor_error) =
            other.on_message(encode_refusal(status.error()), none).error();
        return;
      }
      message = std::move(reply);
      to_acceptor = !to_acceptor;
    }
  }

  Handshake connector, acceptor;
  std::optional<Error> connector_error, acceptor_error;
};

TEST(Handshake, SidesThatAgreeLearnOfEachOther) {
  Talk talk(greeting("a", 1), "secret", greeting("b", 2), "secret");
  talk.run();
  ASSERT_TRUE(talk.connector.proven() && talk.acceptor.proven());
  EXPECT_EQ(talk.connector.other().name, "b");
  EXPECT_EQ(talk.acceptor.other().name, "a");
  EXPECT_EQ(talk.acceptor.other().listens_at, (Address{"127.0.0.1", 4000}));

  Bytes none;
  const Bytes offer =
      talk.connector.offer({bytes_of("addr").size() ? Bytes(4) : Bytes{}, 11, 22, 33});
  ASSERT_TRUE(talk.acceptor.on_message(offer, none).ok());
  EXPECT_TRUE(talk.acceptor.done());
  EXPECT_FALSE(talk.connector.done());
  EXPECT_EQ(talk.acceptor.access().session, 11u);
  EXPECT_EQ(talk.acceptor.access().probe_at, 22u);
  EXPECT_EQ(talk.acceptor.access().probe_value, 33u);
}

TEST(Handshake, NoTokenOnEitherSideIsAgreement) {
  Talk talk(greeting("a", 1), "", greeting("b", 2), "");
  talk.run();
  EXPECT_TRUE(talk.connector.proven() && talk.acceptor.proven());
}

TEST(Handshake, AnotherVersionIsRefusedAndBothSidesSeeBothVersions) {
  Greeting newer = greeting("b", 2);
  newer.protocol = kProtocolVersion + 41;
  for (const bool swapped : {false, true}) {
    Talk talk(swapped ? newer : greeting("a", 1), "t", swapped ? greeting("a", 1) : newer, "t");
    talk.run();
    for (const auto& error : {talk.connector_error, talk.acceptor_error}) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, Code::version_mismatch);
      EXPECT_NE(error->message.find("version 1"), std::string::npos) << error->message;
      EXPECT_NE(error->message.find("version 42"), std::string::npos) << error->message;
    }
  }
}

TEST(Handshake, AWrongTokenIsRefusedOnBothSides) {
  for (const auto& [first, second] : {std::pair{"right", "wrong"}, {"right", ""}, {"", "right"}}) {
    Talk talk(greeting("a", 1), first, greeting("b", 2), second);
    talk.run();
    for (const auto& error : {talk.connector_error, talk.acceptor_error}) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, Code::permission_denied);
      EXPECT_NE(error->message.find("token"), std::string::npos);
      EXPECT_EQ(error->message.find("right"), std::string::npos) << "a token in a message";
    }
    EXPECT_FALSE(talk.connector.proven() || talk.acceptor.proven());
  }
}

TEST(Handshake, AProofOfAnotherConnectionDoesNotHold) {
  Handshake old_connector(Role::connector, greeting("a", 1), "secret");
  Handshake old_acceptor(Role::acceptor, greeting("b", 2), "secret");
  Bytes hello, proof;
  ASSERT_TRUE(old_acceptor.on_message(old_connector.start(), hello).ok());
  ASSERT_TRUE(old_connector.on_message(hello, proof).ok());

  Handshake fresh(Role::acceptor, greeting("b", 3), "secret");
  Bytes reply;
  ASSERT_TRUE(fresh.on_message(old_connector.start(), reply).ok());
  EXPECT_EQ(fresh.on_message(proof, reply).code(), Code::permission_denied);
}

TEST(Handshake, ASideCannotAnswerWithTheOthersOwnProof) {
  Handshake connector(Role::connector, greeting("a", 1), "secret");
  Handshake acceptor(Role::acceptor, greeting("b", 2), "secret");
  Bytes hello, proof, none;
  ASSERT_TRUE(acceptor.on_message(connector.start(), hello).ok());
  ASSERT_TRUE(connector.on_message(hello, proof).ok());
  EXPECT_EQ(connector.on_message(proof, none).code(), Code::permission_denied);
}

TEST(Handshake, MessagesOutOfTurnAreRefused) {
  Handshake connector(Role::connector, greeting("a", 1), "");
  Handshake acceptor(Role::acceptor, greeting("b", 2), "");
  Bytes none;
  EXPECT_EQ(acceptor.on_message(acceptor.offer({}), none).code(), Code::protocol_error);
  Bytes hello;
  ASSERT_TRUE(acceptor.on_message(connector.start(), hello).ok());
  EXPECT_EQ(acceptor.on_message(connector.start(), none).code(), Code::protocol_error);
}

TEST(Handshake, ANodeDoesNotTalkToItself) {
  Talk talk(greeting("a", 1), "", greeting("a", 1), "");
  talk.run();
  EXPECT_EQ(talk.acceptor_error->code, Code::invalid_argument);
}

TEST(Handshake, DamagedMessagesAreRefusedOrHarmless) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 3000; ++round) {
    Handshake connector(Role::connector, greeting("a", 1), "t");
    Handshake acceptor(Role::acceptor, greeting("b", 2), "t");
    Bytes message = connector.start();
    for (int i = 0; i < 4; ++i)
      message[random() % message.size()] = static_cast<std::byte>(random());
    if (round % 3 == 0) message.resize(random() % message.size());
    Bytes hello, proof, none;
    if (!acceptor.on_message(message, hello).ok() || hello.empty()) continue;
    if (!connector.on_message(hello, proof).ok()) continue;
    // Whatever the damage did, the proof covers it.
    if (message != connector.start()) {
      EXPECT_FALSE(acceptor.on_message(proof, none).ok());
    }
  }
}

TEST(Handshake, TextOfTheOtherSideIsMadePrintable) {
  Talk talk(greeting("evil\n\x1b[2J", 1), "", greeting("b", 2), "");
  talk.run();
  EXPECT_EQ(talk.acceptor.other().name, "evil??[2J");
}

TEST(ControlParser, CutsAStreamIntoItsMessages) {
  ControlParser parser;
  const Bytes one = ControlParser::wrap(bytes_of("first"));
  const Bytes two = ControlParser::wrap(bytes_of(""));
  Bytes stream = one;
  stream.insert(stream.end(), two.begin(), two.end());
  std::vector<std::string> messages;
  for (const std::byte byte : stream) {
    parser.push({&byte, 1});
    auto message = parser.next().value();
    if (message) messages.push_back(text_of(*message));
  }
  EXPECT_EQ(messages, (std::vector<std::string>{"first", ""}));
}

TEST(ControlParser, RefusesAStrangerByItsFirstByte) {
  ControlParser parser;
  parser.push(bytes_of("GET / HTTP/1.1"));
  EXPECT_EQ(parser.next().code(), Code::protocol_error);
  ControlParser other;
  other.push(bytes_of("x"));
  EXPECT_EQ(other.next().code(), Code::protocol_error);
}

TEST(ControlParser, RefusesALengthOverTheLimitBeforeItTakesMemory) {
  ControlParser parser;
  Bytes wrapped = ControlParser::wrap({});
  const std::uint32_t length = 0xFFFFFFF0;
  std::memcpy(wrapped.data() + 4, &length, 4);
  parser.push(wrapped);
  EXPECT_EQ(parser.next().code(), Code::protocol_error);
}

}  // namespace
}  // namespace troupe::transport
