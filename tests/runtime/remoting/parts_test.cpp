#include <map>
#include <random>
#include <vector>

#include <caf/all.hpp>
#include <gtest/gtest.h>

#include "runtime/remoting/internal/calls.hpp"
#include "runtime/remoting/internal/envelope.hpp"
#include "runtime/remoting/internal/inline_unit.hpp"
#include "runtime/remoting/internal/pending_requests.hpp"
#include "runtime/remoting/remoting.hpp"

namespace troupe::remoting {
namespace {

std::vector<std::byte> frame(const Envelope& envelope, std::size_t body) {
  Head head;
  encode(envelope, static_cast<std::uint32_t>(body), head);
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.resize(bytes.size() + body, std::byte{1});
  return bytes;
}

TEST(EnvelopeTest, AnEnvelopeComesBackWithItsBody) {
  const Envelope sent{Kind::spawned, 1, 2, 3, ~std::uint64_t{0}};
  const auto bytes = frame(sent, 5);
  const auto opened = open(bytes);
  ASSERT_TRUE(opened.ok()) << to_string(opened.error());
  EXPECT_EQ(opened->envelope.kind, sent.kind);
  EXPECT_EQ(opened->envelope.source, 1u);
  EXPECT_EQ(opened->envelope.destination, 2u);
  EXPECT_EQ(opened->envelope.message_id, 3u);
  EXPECT_EQ(opened->envelope.generation, sent.generation);
  EXPECT_EQ(opened->body.size(), 5u);
  EXPECT_EQ(opened->body.data(), bytes.data() + kHeadBytes);
}

TEST(EnvelopeTest, EveryTruncationAndAWrongBodySizeAreProtocolErrors) {
  auto bytes = frame({.kind = Kind::message, .source = 7, .destination = 9, .message_id = 1}, 5);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto opened = open(std::span(bytes).first(n));
    EXPECT_EQ(opened.code(), Code::protocol_error) << n;
  }
  bytes.push_back({});
  EXPECT_EQ(open(bytes).code(), Code::protocol_error);
}

TEST(EnvelopeTest, AnUnknownKindIsAProtocolError) {
  EXPECT_EQ(open(frame({.kind = static_cast<Kind>(10)}, 0)).code(), Code::protocol_error);
  EXPECT_EQ(open(frame({.kind = static_cast<Kind>(0xffff)}, 0)).code(), Code::protocol_error);
}

TEST(EnvelopeTest, MutatedHeadsAreReadOrRefusedButNeverHarm) {
  std::mt19937 random(1);
  const auto good = frame({.kind = Kind::message, .source = 7, .destination = 9}, 16);
  for (int i = 0; i < 200'000; ++i) {
    auto bytes = good;
    for (int n = 0; n < 3; ++n) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    (void)open(bytes);
  }
}

TEST(NodeIds, OursGoThroughCafAndOthersDoNot) {
  const auto id = NodeId::random();
  EXPECT_EQ(from_caf(to_caf(id)), id);
  EXPECT_FALSE(from_caf(to_caf(NodeId{})).valid());
  EXPECT_FALSE(from_caf(caf::node_id{}).valid());
  auto host = caf::node_id::default_data::host_id_type{};
  host.fill(7);
  EXPECT_FALSE(from_caf(caf::make_node_id(1, host)).valid());
  EXPECT_FALSE(from_caf(caf::make_node_id(77, host)).valid());
}

TEST(PendingRequestsTest, EachIsTakenOutOnceWhateverTheOrder) {
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_actor one{system}, two{system};
  const auto a = caf::actor_cast<caf::strong_actor_ptr>(one);
  const auto b = caf::actor_cast<caf::strong_actor_ptr>(two);
  const auto* route = reinterpret_cast<const Route*>(8);
  const auto* other = reinterpret_cast<const Route*>(16);
  PendingRequests pending;
  std::map<std::pair<int, std::uint64_t>, const Route*> model;
  std::mt19937 random(2);
  const auto id = [](std::uint64_t n) { return caf::make_message_id(n); };
  for (int step = 0; step < 100'000; ++step) {
    const std::pair<int, std::uint64_t> key{random() % 2, 1 + random() % 500};
    const auto& actor = key.first == 0 ? a : b;
    if (model.contains(key)) {
      EXPECT_TRUE(pending.remove(actor->id(), id(key.second).response_id()));
      model.erase(key);
    } else {
      EXPECT_FALSE(pending.remove(actor->id(), id(key.second)));
      model[key] = random() % 2 == 0 ? route : other;
      pending.add(actor, id(key.second), model[key]);
    }
    ASSERT_EQ(pending.size(), model.size());
  }
  const auto of_route =
      std::count_if(model.begin(), model.end(), [&](const auto& x) { return x.second == route; });
  EXPECT_EQ(pending.take(route).size(), static_cast<std::size_t>(of_route));
  EXPECT_EQ(pending.take(nullptr).size(), model.size() - static_cast<std::size_t>(of_route));
  EXPECT_EQ(pending.size(), 0u);
}

TEST(PendingRequestsTest, WhatActorsThatAreGoneAskedIsForgottenInTime) {
  caf::actor_system_config config;
  caf::actor_system system{config};
  PendingRequests pending;
  for (int i = 0; i < 10'000; ++i) {
    caf::scoped_actor asker{system};
    pending.add(caf::actor_cast<caf::strong_actor_ptr>(asker), caf::make_message_id(1), nullptr);
  }
  EXPECT_LT(pending.size(), 100u);
}

TEST(CallsTest, ACallEndsOnceAndOnlyByTheNodeThatWasAsked) {
  Calls calls;
  const auto* asked = reinterpret_cast<const Route*>(8);
  const auto* other = reinterpret_cast<const Route*>(16);
  int ended = 0;
  const auto call = calls.begin(asked, [&](const Result<caf::actor>&) { ++ended; });
  EXPECT_FALSE(calls.finish(call, other, Error{}));
  calls.fail(other, {});
  EXPECT_EQ(ended, 0);
  EXPECT_TRUE(calls.finish(call, asked, Error{}));
  EXPECT_FALSE(calls.finish(call, asked, Error{}));
  calls.fail(nullptr, {});
  EXPECT_EQ(ended, 1);
}

TEST(CoolOffTest, ALongRunEarnsARestThatGrowsUntilAShortRun) {
  CoolOff cool_off;
  ManualClock clock;
  clock.advance(std::chrono::seconds(100));
  const int actor = 0, other = 0;
  EXPECT_FALSE(cool_off.resting(&actor, clock));
  cool_off.note(&actor, clock.now(), CoolOff::kLongRun / 2);
  EXPECT_FALSE(cool_off.resting(&actor, clock));
  Duration last{};
  for (int strike = 1; strike <= 10; ++strike) {
    cool_off.note(&actor, clock.now(), std::chrono::milliseconds(30));
    EXPECT_TRUE(cool_off.resting(&actor, clock));
    EXPECT_FALSE(cool_off.resting(&other, clock));
    Duration rest{};
    while (cool_off.resting(&actor, clock)) {
      clock.advance(CoolOff::kFirstRest);
      rest += CoolOff::kFirstRest;
    }
    EXPECT_GE(rest, last);
    last = rest;
  }
  EXPECT_GT(last, std::chrono::seconds(1));
  EXPECT_LT(last, std::chrono::seconds(10));
  cool_off.note(&actor, clock.now(), CoolOff::kLongRun / 2);
  cool_off.note(&actor, clock.now(), CoolOff::kLongRun * 2);
  clock.advance(CoolOff::kFirstRest);
  EXPECT_FALSE(cool_off.resting(&actor, clock));
}

}  // namespace
}  // namespace troupe::remoting
