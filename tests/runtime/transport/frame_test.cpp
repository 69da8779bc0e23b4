#include "runtime/transport/internal/frame.hpp"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "runtime/transport/transport.hpp"
#include "tests/runtime/transport/transport_fixture.hpp"

namespace troupe::transport {
namespace {

std::vector<std::byte> frame_of(RecordHeader header, std::vector<SegmentRef> segments,
                                std::string_view head, std::string_view body) {
  header.bytes = static_cast<std::uint32_t>(head.size() + body.size());
  header.segments = static_cast<std::uint16_t>(segments.size());
  std::vector<std::byte> frame(record_size(header.bytes, segments.size()));
  EXPECT_EQ(write_record(frame.data(), header, segments, bytes_of(head), bytes_of(body)),
            frame.size());
  return frame;
}

TEST(Frame, RecordsAreReadAsTheyWereWritten) {
  RecordHeader header;
  header.channel = 1;
  header.first_segment = 7;
  auto frame = frame_of(header, {{100, 0}, {200, 4096}}, "head", "body!");
  const auto second = frame_of({}, {}, "", "");
  frame.insert(frame.end(), second.begin(), second.end());

  FrameReader reader(frame);
  const auto record = reader.next().value();
  EXPECT_EQ(record.header.channel, 1);
  EXPECT_EQ(record.header.first_segment, 7u);
  EXPECT_EQ(text_of(record.bytes), "headbody!");
  EXPECT_EQ(record.segment(1).size, 200u);
  EXPECT_EQ(record.segment(1).lent_at, 4096u);
  EXPECT_EQ(reader.next().value().bytes.size(), 0u);
  EXPECT_TRUE(reader.at_end());
}

TEST(Frame, ATruncatedOneIsRefusedAtEveryLength) {
  const auto frame = frame_of({}, {{1, 0}}, "some", "bytes");
  for (std::size_t size = 1; size < frame.size(); ++size) {
    FrameReader reader({frame.data(), size});
    EXPECT_EQ(reader.next().code(), Code::protocol_error) << size;
  }
}

TEST(Frame, FieldsOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    auto frame = frame_of({}, {}, "", "12345678");
    RecordHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    change(header);
    std::memcpy(frame.data(), &header, sizeof header);
    return FrameReader(frame).next().code() == Code::protocol_error;
  };
  EXPECT_TRUE(refused([](RecordHeader& h) { h.kind = static_cast<RecordKind>(9); }));
  EXPECT_TRUE(refused([](RecordHeader& h) { h.channel = 2; }));
  EXPECT_TRUE(refused([](RecordHeader& h) { h.segments = 65535; }));
  EXPECT_TRUE(refused([](RecordHeader& h) { h.bytes = 0xFFFFFFFF; }));
  EXPECT_TRUE(refused([](RecordHeader& h) { h.kind = RecordKind::bye; }));
  EXPECT_TRUE(refused([](RecordHeader& h) { h.kind = RecordKind::spilled; }));
}

TEST(Frame, RandomBytesNeverReachPastTheFrame) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50'000; ++round) {
    std::vector<std::byte> frame(random() % 200);
    for (auto& byte : frame) byte = static_cast<std::byte>(random() % (round % 2 == 0 ? 256 : 3));
    FrameReader reader(frame);
    while (!reader.at_end()) {
      const auto record = reader.next();
      if (!record.ok()) break;
      for (const std::byte byte : record->bytes) ASSERT_LE(static_cast<int>(byte), 255);
    }
  }
}

}  // namespace
}  // namespace troupe::transport
