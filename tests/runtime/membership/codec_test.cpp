#include "runtime/membership/codec.hpp"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::membership {
namespace {

using testing::HasSubstr;

Member some_member(std::uint64_t number) {
  Member member;
  member.node = {7, number};
  member.name = "node-" + std::to_string(number);
  member.address = {"127.0.0.1", static_cast<std::uint16_t>(4000 + number)};
  member.liveness = {"::1", static_cast<std::uint16_t>(5000 + number)};
  member.host = "host";
  member.process = 99;
  member.slots = 4;
  member.joined = number;
  member.draining = number % 2 == 0;
  return member;
}

SharedView some_view() {
  return std::make_shared<const View>(View{3, {7, 1}, {some_member(1), some_member(2)}});
}

std::vector<Message> one_of_each() {
  const Error reason{Code::unavailable, "it is gone"};
  return {Join{5, some_member(3)},
          Welcome{some_member(3), {some_member(1), some_member(2)}, {}},
          Mesh{},
          Joined{some_view()},
          Refused{reason},
          ViewChanged{some_view(), {{{7, 9}, "node-9", reason}}},
          Leave{},
          Released{},
          Heartbeat{3, 17},
          Suspect{{7, 2}, reason},
          Fenced{reason},
          Ended{reason},
          Forget{{7, 4}},
          Takeover{kProtocol, 3, 17, some_member(5), {}},
          Followed{3, some_view()},
          Superseded{4},
          Drain{{7, 2}},
          Amended{std::make_shared<const Amendment>(
              Amendment{4, {some_member(3)}, {{{7, 9}, "node-9", reason}}, 2})}};
}

TEST(Codec, reads_back_every_kind_of_message) {
  const auto messages = one_of_each();
  ASSERT_EQ(messages.size(), std::variant_size_v<Message>);
  for (const auto& message : messages) {
    auto read = decode(encode(message));
    ASSERT_TRUE(read.ok()) << name_of(message) << ": " << read.error().message;
    EXPECT_EQ(read->index(), message.index());
    // The bytes hold every field, so equal bytes are equal messages.
    EXPECT_EQ(encode(*read), encode(message)) << name_of(message);
  }
}

TEST(Codec, keeps_members_views_and_reasons_whole) {
  const auto read =
      decode(encode(ViewChanged{some_view(), {{{7, 9}, "x", {Code::cancelled, "y"}}}}));
  const auto& changed = std::get<ViewChanged>(*read);
  EXPECT_EQ(*changed.view, *some_view());
  ASSERT_EQ(changed.departures.size(), 1u);
  EXPECT_EQ(changed.departures[0].reason.code, Code::cancelled);
  EXPECT_EQ(changed.departures[0].reason.message, "y");
}

TEST(Codec, cuts_a_reason_that_is_too_long) {
  const auto read = decode(encode(Fenced{{Code::internal, std::string(5000, 'x')}}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<Fenced>(*read).reason.message.size(), kMaxReasonBytes);
}

TEST(Codec, refuses_a_name_that_is_too_long) {
  Member member = some_member(1);
  member.name = std::string(kMaxNameBytes + 1, 'n');
  const auto read = decode(encode(Join{kProtocol, member}));
  EXPECT_EQ(read.code(), Code::protocol_error);
  EXPECT_THAT(read.error().message, HasSubstr("a name of 129 bytes, more than 128"));
}

TEST(Codec, refuses_a_member_without_an_id) {
  Member member = some_member(1);
  member.node = {};
  EXPECT_EQ(decode(encode(Join{kProtocol, member})).code(), Code::protocol_error);
}

TEST(Codec, refuses_a_timing_that_makes_no_sense) {
  Welcome welcome{some_member(1), {}, {std::chrono::seconds(2), std::chrono::seconds(1)}};
  EXPECT_THAT(decode(encode(welcome)).error().message, HasSubstr("heartbeat period of 2 s"));
  welcome.timing = {Duration(-1), Duration(-1)};
  EXPECT_EQ(decode(encode(welcome)).code(), Code::protocol_error);
}

TEST(Codec, refuses_too_many_members) {
  View view{1, {7, 1}, std::vector<Member>(kMaxMembers + 1, some_member(1))};
  const auto read = decode(encode(Joined{std::make_shared<const View>(std::move(view))}));
  EXPECT_EQ(read.code(), Code::protocol_error);
}

TEST(Codec, refuses_truncated_bytes_of_every_length) {
  const auto bytes = encode(ViewChanged{some_view(), {}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = decode(std::span(bytes).first(size));
    if (size % 8 != 0 || size < 16) {
      EXPECT_EQ(read.code(), Code::protocol_error) << size;
    }
  }
}

TEST(Codec, survives_any_bytes) {
  std::mt19937_64 random(1);
  const auto messages = one_of_each();
  for (int i = 0; i < 20000; ++i) {
    auto bytes = i % 2 == 0 ? encode(messages[random() % messages.size()])
                            : std::vector<std::byte>(8 * (random() % 40));
    if (i % 2 != 0)
      for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    for (std::uint64_t flips = random() % 4; flips > 0 && !bytes.empty(); --flips)
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
    const auto read = decode(bytes);
    if (read.ok()) {
      EXPECT_FALSE(encode(*read).empty());
    }
  }
}

TEST(Timing, wants_several_periods_in_a_limit) {
  using std::chrono::milliseconds;
  EXPECT_TRUE((Timing{milliseconds(100), milliseconds(300)}.validate().ok()));
  EXPECT_EQ((Timing{milliseconds(100), milliseconds(299)}.validate().code()),
            Code::invalid_argument);
  EXPECT_EQ((Timing{Duration(0), milliseconds(299)}.validate().code()), Code::invalid_argument);
}

}  // namespace
}  // namespace troupe::membership
