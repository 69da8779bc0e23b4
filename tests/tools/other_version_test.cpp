// A release of Troupe that speaks another protocol, on either side of the command.
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/transport/stranger.hpp"
#include "tests/tools/process.hpp"

namespace troupe::tool {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using transport::Handshake;
using transport::Stranger;

const auto kBothVersions =
    AllOf(HasSubstr(fmt::format("version {}", transport::kProtocolVersion)),
          HasSubstr(fmt::format("version {}", transport::kProtocolVersion + 1)));

transport::Greeting newer() {
  auto greeting = transport::strange_greeting();
  greeting.protocol = transport::kProtocolVersion + 1;
  return greeting;
}

TEST(OtherVersion, a_node_of_another_version_is_told_both_and_does_no_harm) {
  Head head;
  Stranger node(transport::Address::parse(head.address).value());
  Handshake handshake(Handshake::Role::connector, newer(), "");
  node.say(transport::ControlParser::wrap(handshake.start()));
  const auto answer = node.hear();
  ASSERT_TRUE(answer);
  const auto refusal = transport::decode_refusal(*answer);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, Code::version_mismatch);
  EXPECT_THAT(refusal->message, kBothVersions);
  Process status({"status", "--head", head.address});
  EXPECT_EQ(status.wait(), 0) << status.output();
}

TEST(OtherVersion, a_head_of_another_version_refuses_and_the_node_says_both) {
  transport::Port port;
  ASSERT_EQ(::listen(port.fd, 1), 0);
  std::thread server([&port] {
    Stranger client(port);
    Handshake handshake(Handshake::Role::acceptor, newer(), "");
    const auto hello = client.hear();
    transport::Bytes reply;
    const auto status = handshake.on_message(hello.value_or(transport::Bytes{}), reply);
    ASSERT_FALSE(status.ok());
    client.say(transport::ControlParser::wrap(transport::encode_refusal(status.error())));
    client.hear();  // until it closes
  });
  Process node({"node", "--head", to_string(port.address)});
  EXPECT_EQ(node.wait(), 3) << node.output();
  EXPECT_THAT(node.output(), AllOf(HasSubstr("troupe: "), kBothVersions));
  server.join();
}

}  // namespace
}  // namespace troupe::tool
