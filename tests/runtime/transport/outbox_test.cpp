#include "runtime/transport/internal/outbox.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "tests/runtime/transport/transport_fixture.hpp"

namespace troupe::transport {
namespace {

struct OutboxTest : testing::Test {
  Result<bool> append(Outbox& outbox, std::size_t bytes, bool may_block = true) {
    return outbox.append(Channel::actors, bytes_of(std::string(bytes, 'x')), {}, {}, may_block);
  }
  BufferPool pool;
  std::vector<ChunkPtr> frames;
  std::vector<OutSegment> segments;
};

TEST_F(OutboxTest, ManyMessagesShareAFrame) {
  Outbox outbox({.chunk_bytes = 8000}, pool);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(append(outbox, 64).ok());
  outbox.take(frames, segments);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0]->messages + frames[1]->messages, 200u);
}

TEST_F(OutboxTest, OnlyTheFirstMessageAfterATakeAsksForAttention) {
  Outbox outbox({}, pool);
  EXPECT_TRUE(append(outbox, 1).value());
  EXPECT_FALSE(append(outbox, 1).value());
  outbox.take(frames, segments);
  EXPECT_TRUE(append(outbox, 1).value());
}

TEST_F(OutboxTest, AFullQueueRefusesWhoMayNotBlockAtTwiceItsBound) {
  Outbox outbox({.max_queued_bytes = 1000}, pool);
  int taken = 0;
  while (append(outbox, 80, false).ok()) ++taken;
  EXPECT_EQ(taken, 20);
  EXPECT_EQ(append(outbox, 80, false).code(), Code::resource_exhausted);
}

TEST_F(OutboxTest, AFullQueueRefusesABlockedSenderAfterTheTimeout) {
  Outbox outbox({.max_queued_bytes = 1000, .send_timeout = std::chrono::milliseconds(1)}, pool);
  while (append(outbox, 80).ok()) {
  }
  EXPECT_EQ(append(outbox, 80).code(), Code::resource_exhausted);
  EXPECT_LE(outbox.queued_bytes(), 1000u);
}

TEST_F(OutboxTest, AnEmptyQueueTakesAMessageOfAnySize) {
  Outbox outbox({.max_queued_bytes = 1000}, pool);
  EXPECT_TRUE(outbox.append(Channel::actors, {}, {}, {pattern(1 << 20, 1)}, true).ok());
}

TEST_F(OutboxTest, ABlockedSenderGoesOnOnceThereIsRoom) {
  Outbox outbox({.chunk_bytes = 512, .max_queued_bytes = 1000}, pool);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(append(outbox, 80).ok());
  std::thread sender([&] { EXPECT_TRUE(append(outbox, 80).ok()); });
  outbox.take(frames, segments);
  for (ChunkPtr& frame : frames) outbox.recycle(std::move(frame));
  sender.join();
}

TEST_F(OutboxTest, ClosingFreesABlockedSenderWithTheReason) {
  Outbox outbox({.max_queued_bytes = 1000}, pool);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(append(outbox, 80).ok());
  std::thread sender([&] { EXPECT_EQ(append(outbox, 80).code(), Code::unavailable); });
  outbox.close(Error{Code::unavailable, "gone"});
  sender.join();
  EXPECT_EQ(append(outbox, 1).code(), Code::unavailable);
}

TEST_F(OutboxTest, RefusesWhatIsTooLargeAndNamesTheLimit) {
  Outbox outbox({.max_message_bytes = 100, .max_segment_bytes = 50}, pool);
  const auto message = append(outbox, 101);
  EXPECT_EQ(message.code(), Code::invalid_argument);
  EXPECT_NE(message.error().message.find("100"), std::string::npos);
  EXPECT_EQ(outbox.append(Channel::actors, {}, {}, {pattern(51, 1)}, true).code(),
            Code::invalid_argument);
  EXPECT_EQ(outbox.append(Channel::actors, {}, {}, std::vector<Buffer>(5000), true).code(),
            Code::invalid_argument);
}

}  // namespace
}  // namespace troupe::transport
