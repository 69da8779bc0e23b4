#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "tests/runtime/transport/transport_fixture.hpp"

namespace troupe::transport {
namespace {

/// Each test runs over both kinds of transport.
class TransportPair : public testing::TestWithParam<const char*> {};

TEST_P(TransportPair, DeliversMessagesInTheOrderOfTheirSends) {
  Pair pair(GetParam());
  pair.connect();
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(pair.a.send(pair.to_b, fmt::format("m{}", i)).ok());
  ASSERT_TRUE(pair.b.recorder.wait_messages(20'000));
  const auto messages = pair.b.recorder.messages();
  for (int i = 0; i < 20'000; ++i)
    ASSERT_EQ(messages[static_cast<std::size_t>(i)].bytes, fmt::format("m{}", i));
}

TEST_P(TransportPair, CarriesHeadAndBodyAsOneMessage) {
  Pair pair(GetParam());
  pair.connect();
  ASSERT_TRUE(
      pair.b.transport->send(pair.to_a, Channel::actors, bytes_of("head"), bytes_of("body"), {})
          .ok());
  ASSERT_TRUE(pair.a.recorder.wait_messages(1));
  EXPECT_EQ(pair.a.recorder.messages()[0].bytes, "headbody");
}

TEST_P(TransportPair, CarriesSegmentsOfAllSizesInOrderWithTheirMessages) {
  Pair pair(GetParam());
  pair.connect();
  const std::size_t sizes[] = {0,    1,     100,     4096,          5000,
                               8192, 65536, 1 << 20, (5 << 20) + 3, 64 << 20};
  std::uint64_t seed = 0;
  for (const std::size_t size : sizes) {
    ++seed;
    ASSERT_TRUE(pair.a
                    .send(pair.to_b, fmt::format("s{}", seed),
                          {pattern(size, seed), pattern(size / 2, seed + 100)})
                    .ok());
    ASSERT_TRUE(pair.a.send(pair.to_b, fmt::format("t{}", seed)).ok());
  }
  ASSERT_TRUE(pair.b.recorder.wait_messages(2 * std::size(sizes)));
  const auto messages = pair.b.recorder.messages();
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    const auto& message = messages[2 * i];
    EXPECT_EQ(message.bytes, fmt::format("s{}", i + 1));
    ASSERT_EQ(message.segments.size(), 2u);
    EXPECT_EQ(message.segments[0].size(), sizes[i]);
    EXPECT_TRUE(has_pattern(message.segments[0], i + 1)) << sizes[i];
    EXPECT_TRUE(has_pattern(message.segments[1], i + 101)) << sizes[i];
    EXPECT_EQ(messages[2 * i + 1].bytes, fmt::format("t{}", i + 1));
  }
}

TEST_P(TransportPair, CarriesBodiesThatDoNotFitAFrame) {
  Pair pair(GetParam());
  pair.connect();
  for (const std::size_t size : {7900, 7999, 8000, 9000, 100'000, 3'000'000})
    ASSERT_TRUE(pair.a.send(pair.to_b, std::string(size, 'x')).ok());
  ASSERT_TRUE(pair.b.recorder.wait_messages(6));
  EXPECT_EQ(pair.b.recorder.messages()[5].bytes.size(), 3'000'000u);
}

TEST_P(TransportPair, TellsBothSidesOfACloseOnce) {
  Pair pair(GetParam());
  pair.connect();
  ASSERT_TRUE(pair.a.send(pair.to_b, "last words").ok());
  pair.a.transport->close(pair.to_b);
  ASSERT_TRUE(pair.b.recorder.wait_lost(1));
  ASSERT_TRUE(pair.a.recorder.wait_lost(1));
  EXPECT_EQ(pair.b.recorder.messages()[0].bytes, "last words");
  EXPECT_EQ(pair.a.recorder.lost()[0].second.code, Code::cancelled);
  EXPECT_EQ(pair.b.recorder.lost()[0].second.code, Code::unavailable);
}

TEST_P(TransportPair, TellsThePeerTheReasonOfAClose) {
  Pair pair(GetParam());
  pair.connect();
  pair.a.transport->close(pair.to_b, Error{Code::stale_generation, "generation 3 is over"});
  ASSERT_TRUE(pair.b.recorder.wait_lost(1));
  ASSERT_TRUE(pair.a.recorder.wait_lost(1));
  const Error reason = pair.b.recorder.lost()[0].second;
  EXPECT_EQ(reason.code, Code::stale_generation);
  EXPECT_NE(reason.message.find("generation 3 is over"), std::string::npos);
  EXPECT_EQ(pair.a.recorder.lost()[0].second.code, Code::stale_generation);
  EXPECT_EQ(pair.a.send(pair.to_b, "x").code(), Code::unavailable);
}

TEST_P(TransportPair, SaysWhoThePeerIs) {
  Options first = options_of("a", GetParam()), second = options_of("b", GetParam());
  const NodeId node = second.node;
  Pair pair(std::move(first), std::move(second));
  pair.connect();
  const PeerInfo info = pair.a.recorder.connected()[0].second;
  EXPECT_EQ(info.node, node);
  EXPECT_EQ(info.name, "b");
  EXPECT_NE(info.listens_at.port, 0);
  EXPECT_TRUE(info.outgoing && info.same_host);
  EXPECT_FALSE(pair.b.recorder.connected()[0].second.outgoing);
}

TEST_P(TransportPair, SendsFromManyThreadsArriveEachInItsOrder) {
  Pair pair(GetParam());
  pair.connect();
  constexpr int kEach = 3000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        std::vector<Buffer> segments;
        if (i % 500 == 0) segments.push_back(pattern(50'000, 1));
        ASSERT_TRUE(pair.a.send(pair.to_b, fmt::format("{} {}", t, i), std::move(segments)).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(pair.b.recorder.wait_messages(3 * kEach));
  int next[3] = {};
  for (const auto& message : pair.b.recorder.messages()) {
    const int thread = message.bytes[0] - '0';
    ASSERT_EQ(message.bytes, fmt::format("{} {}", thread, next[thread]++));
  }
}

TEST_P(TransportPair, AnswersCanBeSentFromTheHandler) {
  Pair pair(GetParam());
  pair.b.recorder.on_arrival = [&](PeerId peer, auto bytes, auto) {
    EXPECT_TRUE(pair.b.transport->on_progress_thread());
    EXPECT_TRUE(pair.b.send(peer, "re: " + text_of(bytes)).ok());
  };
  pair.connect();
  for (std::size_t i = 1; i <= 200; ++i) {
    ASSERT_TRUE(pair.a.send(pair.to_b, "ask").ok());
    ASSERT_TRUE(pair.a.recorder.wait_messages(i));
  }
  EXPECT_EQ(pair.a.recorder.messages()[199].bytes, "re: ask");
  EXPECT_FALSE(pair.a.transport->on_progress_thread());
}

TEST_P(TransportPair, StopEndsThePeersThreadsAndDescriptors) {
  const auto things = [] {
    std::size_t n = 0;
    for (const char* folder : {"/proc/self/fd", "/proc/self/task", "/dev/shm"})
      n += static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
    return n;
  };
  { Pair(GetParam()).connect(); }  // what UCX keeps once per process
  const std::size_t before = things();
  for (int i = 0; i < 3; ++i) {
    Pair pair(GetParam());
    pair.connect();
    ASSERT_TRUE(pair.a.send(pair.to_b, "x", {pattern(1 << 20, 1)}).ok());
    pair.a.transport->stop();
    pair.a.transport->stop();
    ASSERT_TRUE(pair.b.recorder.wait_lost(1));
    EXPECT_EQ(pair.b.recorder.count(), 1u) << "stop() sends what is queued";
    EXPECT_EQ(pair.a.recorder.lost().size(), 1u);
  }
  EXPECT_EQ(things(), before);
}

INSTANTIATE_TEST_SUITE_P(Over, TransportPair, testing::Values("tcp", ""),
                         [](const auto& given) { return *given.param == 0 ? "all" : given.param; });

}  // namespace
}  // namespace troupe::transport
