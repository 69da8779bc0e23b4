#include "runtime/transport/internal/inbox.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/transport/internal/outbox.hpp"
#include "tests/runtime/transport/transport_fixture.hpp"

namespace troupe::transport {
namespace {

struct Seen final : Inbox::Sink {
  void message(Channel, std::span<const std::byte> bytes, std::span<Buffer> segments) override {
    messages.push_back(text_of(bytes));
    for (Buffer& segment : segments) buffers.push_back(std::move(segment));
  }
  void released(std::uint64_t segment) override {
    messages.push_back(fmt::format("released {}", segment));
  }
  void bye() override { messages.push_back("bye"); }
  void may_lend() override { messages.push_back("may lend"); }
  void lent(std::uint64_t segment, std::uint64_t address, std::size_t size) override {
    loans.push_back({segment, address, size});
  }
  struct Loan {
    std::uint64_t segment, address;
    std::size_t size;
  };
  std::vector<std::string> messages;
  std::vector<Buffer> buffers;
  std::vector<Loan> loans;
};

class InboxTest : public testing::Test {
protected:
  /// Frames and segments as a sender makes them.
  void send(const std::string& text, std::vector<Buffer> segments = {}) {
    ASSERT_TRUE(outbox.append(Channel::actors, {}, bytes_of(text), std::move(segments), true).ok());
    outbox.take(frames, segments_out);
  }
  std::span<const std::byte> frame(std::size_t i) {
    return {frames[i]->data.get(), frames[i]->size};
  }
  Status deliver(std::size_t i) { return inbox.on_frame(i, frame(i)); }
  Status deliver_segment(std::size_t i, std::size_t parts = 1) {
    const OutSegment& segment = segments_out[i];
    const std::size_t size = segment.buffer.size();
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t from = size * part / parts, to = size * (part + 1) / parts;
      TROUPE_ASSIGN(std::byte * at, inbox.destination(segment.number, from, to - from, size));
      if (at == nullptr) return Error{Code::resource_exhausted, "no room"};
      std::memcpy(at, segment.buffer.data() + from, to - from);
      TROUPE_TRY(inbox.on_segment_bytes(segment.number, to - from));
    }
    return {};
  }

  BufferPool pool;
  Outbox outbox{{}, pool};
  Seen seen;
  Inbox inbox{{.max_segment_bytes = 1 << 20, .max_incoming_bytes = 100'000}, pool, seen};
  std::vector<ChunkPtr> frames;
  std::vector<OutSegment> segments_out;
};

TEST_F(InboxTest, PutsFramesBackInOrder) {
  for (int i = 0; i < 5; ++i) send(fmt::format("{}", i));
  for (const std::size_t i : {3u, 1u, 0u, 4u, 2u}) ASSERT_TRUE(deliver(i).ok());
  EXPECT_EQ(seen.messages, (std::vector<std::string>{"0", "1", "2", "3", "4"}));
}

TEST_F(InboxTest, AMessageAndAllLaterOnesWaitForItsSegments) {
  send("before");
  send("bulk", {pattern(10'000, 1), pattern(5, 2)});
  send("after");
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(deliver(i).ok());
  EXPECT_EQ(seen.messages, (std::vector<std::string>{"before"}));
  ASSERT_TRUE(deliver_segment(1).ok());
  EXPECT_EQ(seen.messages.size(), 1u);
  ASSERT_TRUE(deliver_segment(0, 7).ok());
  EXPECT_EQ(seen.messages, (std::vector<std::string>{"before", "bulk", "after"}));
  EXPECT_TRUE(has_pattern(seen.buffers[0], 1) && has_pattern(seen.buffers[1], 2));
}

TEST_F(InboxTest, SegmentsMayComeBeforeTheMessageThatNamesThem) {
  send("bulk", {pattern(9'000, 3)});
  ASSERT_TRUE(deliver_segment(0, 3).ok());
  EXPECT_TRUE(seen.messages.empty());
  ASSERT_TRUE(deliver(0).ok());
  EXPECT_TRUE(has_pattern(seen.buffers.at(0), 3));
}

TEST_F(InboxTest, ABodyOverAFrameComesBackAsBytes) {
  const std::string body(50'000, 'z');
  send(body, {pattern(100, 9)});
  ASSERT_TRUE(deliver(0).ok());
  for (std::size_t i = 0; i < segments_out.size(); ++i) ASSERT_TRUE(deliver_segment(i).ok());
  EXPECT_EQ(seen.messages, (std::vector<std::string>{body}));
  ASSERT_EQ(seen.buffers.size(), 1u);
  EXPECT_TRUE(has_pattern(seen.buffers[0], 9));
}

TEST_F(InboxTest, HandsOutNothingWhileHeld) {
  inbox.hold();
  send("x");
  ASSERT_TRUE(deliver(0).ok());
  EXPECT_TRUE(seen.messages.empty());
  ASSERT_TRUE(inbox.resume().ok());
  EXPECT_EQ(seen.messages.size(), 1u);
}

TEST_F(InboxTest, TakesMemoryForABoundedNumberOfBytesAtATime) {
  send("one", {pattern(80'000, 1)});
  send("two", {pattern(80'000, 2)});
  ASSERT_TRUE(deliver(0).ok() && deliver(1).ok());
  ASSERT_NE(inbox.destination(0, 0, 1, 80'000).value(), nullptr);
  EXPECT_EQ(inbox.destination(1, 0, 1, 80'000).value(), nullptr);
  ASSERT_TRUE(deliver_segment(0).ok());
  EXPECT_NE(inbox.destination(1, 0, 1, 80'000).value(), nullptr);
}

TEST_F(InboxTest, TheSegmentThatAllWaitForGetsRoomAtOnce) {
  send("one", {pattern(80'000, 1)});
  send("two", {pattern(80'000, 2)});
  ASSERT_TRUE(deliver(0).ok() && deliver(1).ok());
  ASSERT_NE(inbox.destination(1, 0, 1, 80'000).value(), nullptr);
  EXPECT_NE(inbox.destination(0, 0, 1, 80'000).value(), nullptr);
}

TEST_F(InboxTest, RefusesWhatBreaksTheRules) {
  send("x", {pattern(100, 1)});
  ASSERT_TRUE(deliver(0).ok());
  EXPECT_EQ(deliver(0).code(), Code::protocol_error) << "the same frame again";
  EXPECT_EQ(inbox.on_frame(1 << 30, frame(0)).code(), Code::protocol_error) << "far ahead";
  EXPECT_EQ(inbox.on_frame(1, frame(0)).code(), Code::protocol_error) << "the same segment again";
  EXPECT_EQ(inbox.destination(0, 90, 20, 100).code(), Code::protocol_error) << "past its end";
  EXPECT_EQ(inbox.destination(0, ~0ull, 2, 100).code(), Code::protocol_error) << "overflow";
  EXPECT_EQ(inbox.destination(0, 0, 10, 99).code(), Code::protocol_error) << "another size";
  EXPECT_EQ(inbox.destination(1ull << 40, 0, 1, 1).code(), Code::protocol_error) << "far number";
  EXPECT_EQ(inbox.destination(1, 0, 1, 2 << 20).code(), Code::protocol_error) << "over the limit";
  EXPECT_EQ(inbox.on_segment_bytes(0, 101).code(), Code::protocol_error) << "too many bytes";
}

TEST_F(InboxTest, ASegmentIsLentOnlyIfThatWasAgreed) {
  outbox.lend_memory();
  send("x", {pattern(5'000, 1)});
  Inbox strict({}, pool, seen);
  EXPECT_EQ(strict.on_frame(0, frame(0)).code(), Code::protocol_error);
  inbox.borrow_memory();
  ASSERT_TRUE(deliver(0).ok());
  ASSERT_EQ(seen.loans.size(), 1u);
  EXPECT_EQ(seen.loans[0].size, 5'000u);
}

TEST_F(InboxTest, AnyOrderOfArrivalGivesTheOrderOfSends) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    BufferPool own_pool;
    Outbox sender({}, own_pool);
    Seen got;
    Inbox receiver({}, own_pool, got);
    std::vector<ChunkPtr> made;
    std::vector<OutSegment> bulk;
    std::vector<std::string> wanted;
    for (int i = 0; i < 20; ++i) {
      wanted.push_back(fmt::format("{}", i));
      std::vector<Buffer> segments;
      for (std::uint64_t n = random() % 3; n > 0; --n)
        segments.push_back(pattern(random() % 9000, n));
      ASSERT_TRUE(
          sender.append(Channel::actors, {}, bytes_of(wanted.back()), std::move(segments), true)
              .ok());
      if (random() % 2 == 0) sender.take(made, bulk);
    }
    sender.take(made, bulk);
    std::vector<std::pair<bool, std::size_t>> events;
    for (std::size_t i = 0; i < made.size(); ++i) events.emplace_back(true, i);
    for (std::size_t i = 0; i < bulk.size(); ++i)
      if (!bulk[i].buffer.empty()) events.emplace_back(false, i);
    std::shuffle(events.begin(), events.end(), random);
    for (const auto& [is_frame, i] : events) {
      if (is_frame) {
        ASSERT_TRUE(receiver.on_frame(i, {made[i]->data.get(), made[i]->size}).ok());
        continue;
      }
      const std::size_t size = bulk[i].buffer.size();
      std::byte* to = receiver.destination(bulk[i].number, 0, size, size).value();
      std::memcpy(to, bulk[i].buffer.data(), size);
      ASSERT_TRUE(receiver.on_segment_bytes(bulk[i].number, size).ok());
    }
    ASSERT_EQ(got.messages, wanted) << "round " << round;
  }
}

TEST_F(InboxTest, RandomFramesNeverDoMoreThanFail) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 20'000; ++round) {
    Seen got;
    Inbox receiver({.max_segment_bytes = 1 << 16, .max_incoming_bytes = 1 << 16}, pool, got);
    if (round % 2 == 0) receiver.borrow_memory();
    for (std::uint64_t sequence = 0; sequence < 4; ++sequence) {
      std::vector<std::uint64_t> words(random() % 12);
      for (auto& word : words)
        word = random() & (round % 3 == 0 ? ~0ull : 0x0000'0003'0103'001Full);
      const auto bytes = std::as_bytes(std::span(words));
      if (!receiver.on_frame(random() % 5, bytes).ok()) break;
      const auto at = receiver.destination(random() % 4, random() % 70'000, random() % 70'000,
                                           random() % 70'000);
      if (!at.ok()) break;
    }
  }
}

}  // namespace
}  // namespace troupe::transport
