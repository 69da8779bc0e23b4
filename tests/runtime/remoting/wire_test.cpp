#include "runtime/remoting/internal/wire.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/config_value.hpp>
#include <caf/error.hpp>
#include <caf/message.hpp>
#include <caf/scoped_execution_unit.hpp>
#include <caf/sec.hpp>
#include <gtest/gtest.h>

#include "runtime/remoting/buffer_message.hpp"

namespace troupe::remoting {
namespace {

class Wire : public testing::Test {
protected:
  template <class... Ts>
  void write(Ts... xs) {
    WireWriter sink{&context, scratch, segments};
    const auto error = sink(xs...);
    EXPECT_FALSE(error);
  }
  template <class... Ts>
  caf::error read(Ts&... xs) {
    WireReader source{&context, scratch.bytes(), segments};
    if (auto error = source(xs...)) return error;
    return source.done() ? caf::error{} : caf::make_error(caf::sec::runtime_error);
  }
  template <class T>
  void expect_round_trip(const T& value) {
    scratch.clear();
    write(value);
    T back{};
    EXPECT_FALSE(read(back));
    EXPECT_EQ(back, value);
  }
  void put_raw(std::initializer_list<int> bytes) {
    for (const int byte : bytes) {
      const auto b = static_cast<std::byte>(byte);
      scratch.append(&b, 1);
    }
  }

  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_execution_unit context{&system};
  Scratch scratch;
  std::vector<Buffer> segments;
};

TEST_F(Wire, ValuesOfEveryKindComeBack) {
  expect_round_trip(std::int8_t{-5});
  expect_round_trip(std::numeric_limits<std::uint64_t>::max());
  expect_round_trip(std::numeric_limits<std::int64_t>::min());
  expect_round_trip(true);
  expect_round_trip(1.5f);
  expect_round_trip(-0.1);
  expect_round_trip(std::numeric_limits<double>::infinity());
  expect_round_trip(0.1L);
  expect_round_trip(std::string("text\0with zero", 14));
  expect_round_trip(std::u16string(u"\u00e4bc"));
  expect_round_trip(std::u32string(U"\U0001F600"));
  expect_round_trip(std::vector<std::uint8_t>(1000, 7));
  expect_round_trip(std::vector<bool>(1001, true));
  expect_round_trip(std::vector<std::vector<bool>>(100, {true, false}));
  expect_round_trip(std::map<std::string, std::vector<int>>{{"a", {1, 2}}, {"b", {}}});
  expect_round_trip(std::set<double>{1, 2, 3});
}

TEST_F(Wire, ManyFlagsInOneMessageDoNotCountAsNesting) {
  expect_round_trip(std::vector<std::vector<bool>>(10'000, std::vector<bool>(9, true)));
}

TEST_F(Wire, AByteSequenceIsNotResizedToACountThatItsBytesCannotHold) {
  put_raw({0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3});  // 4 Gi elements, 3 bytes
  std::vector<char> bytes;
  EXPECT_TRUE(read(bytes));
  EXPECT_LT(bytes.capacity(), 100u);
  std::vector<bool> bits;
  EXPECT_TRUE(read(bits));
  EXPECT_LT(bits.capacity(), 100u);
  std::string text;
  EXPECT_TRUE(read(text));
  std::u32string wide;
  EXPECT_TRUE(read(wide));
  EXPECT_LT(wide.capacity(), 100u);
  std::vector<caf::unit_t> nothing;
  EXPECT_TRUE(read(nothing));
  Buffer buffer;
  EXPECT_TRUE(read(buffer));
}

TEST_F(Wire, CountsOfOneMessageAreBoundedTogether) {
  // Each count alone could be true; all of them cannot.
  std::vector<std::vector<caf::unit_t>> nested;
  WireWriter sink{&context, scratch, segments};
  sink.write_count(1000);
  for (int i = 0; i < 1000; ++i) sink.write_count(1000);
  EXPECT_TRUE(read(nested));
}

TEST_F(Wire, CountsOfMoreThan64BitsAreRefused) {
  put_raw({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  std::string text;
  EXPECT_TRUE(read(text));
}

TEST_F(Wire, MessagesNestOnlySoDeep) {
  auto nest = [](int levels) {
    auto message = caf::make_message(std::int32_t{1});
    for (int i = 0; i < levels; ++i) message = caf::make_message(message);
    return message;
  };
  write(nest(20));
  caf::message back;
  EXPECT_FALSE(read(back));

  // What no stack would hold: the head of a message in a message, a hundred thousand times.
  scratch.clear();
  for (int i = 0; i < 100'000; ++i) {
    put_raw({0, 0});
    WireWriter sink{&context, scratch, segments};
    sink.write_string("@<>+@message");
  }
  EXPECT_TRUE(read(back));
}

TEST_F(Wire, ListsInAConfigValueNestOnlySoDeep) {
  caf::config_value inner{std::int64_t{1}};
  write(caf::config_value{std::vector<caf::config_value>{inner}});
  caf::config_value back;
  EXPECT_FALSE(read(back));
  const std::vector<std::byte> level(scratch.bytes().begin(), scratch.bytes().begin() + 2);
  scratch.clear();
  for (int i = 0; i < 100'000; ++i) scratch.append(level.data(), level.size());
  EXPECT_TRUE(read(back));
}

TEST_F(Wire, EveryTruncationOfAMessageIsRefused) {
  write(std::string("abc"), std::vector<double>{1, 2, 3}, std::map<std::string, int>{{"k", 1}},
        std::uint64_t{9});
  const std::vector<std::byte> whole(scratch.bytes().begin(), scratch.bytes().end());
  for (std::size_t n = 0; n < whole.size(); ++n) {
    scratch.clear();
    scratch.append(whole.data(), n);
    std::string a;
    std::vector<double> b;
    std::map<std::string, int> c;
    std::uint64_t d = 0;
    EXPECT_TRUE(read(a, b, c, d)) << n;
  }
}

TEST_F(Wire, ABufferIsASegmentFromFourKiBOn) {
  const auto small = Buffer::allocate(kOutOfBandBytes - 1).value();
  const auto large = Buffer::allocate(kOutOfBandBytes).value();
  write(small, large);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].data(), large.data());  // not copied
  EXPECT_GE(scratch.bytes().size(), small.size());
  EXPECT_LT(scratch.bytes().size(), small.size() + 64);
  const auto* sent_from = segments[0].data();
  Buffer a, b;
  EXPECT_FALSE(read(a, b));
  EXPECT_EQ(a.size(), small.size());
  EXPECT_EQ(b.data(), sent_from);
}

TEST_F(Wire, ASegmentThatIsMissingOrOfAnotherSizeOrTooManyIsRefused) {
  write(Buffer::allocate(5000).value());
  auto kept = segments;
  Buffer buffer;
  segments.clear();
  EXPECT_TRUE(read(buffer));
  segments = {Buffer::allocate(4999).value()};
  EXPECT_TRUE(read(buffer));
  segments = {kept[0], kept[0]};
  EXPECT_TRUE(read(buffer));
  segments = kept;
  EXPECT_FALSE(read(buffer));
}

TEST_F(Wire, InAnotherSerializerABufferIsCopiedInLine) {
  std::vector<char> bytes;
  auto buffer = Buffer::allocate(3 << 20).value();
  std::fill(buffer.bytes().begin(), buffer.bytes().end(), std::byte{7});
  caf::binary_serializer sink{&context, bytes};
  ASSERT_FALSE(sink(buffer));
  EXPECT_GT(bytes.size(), buffer.size());
  Buffer back;
  caf::binary_deserializer source{&context, bytes};
  ASSERT_FALSE(source(back));
  EXPECT_EQ(back.size(), buffer.size());
  EXPECT_TRUE(std::equal(back.bytes().begin(), back.bytes().end(), buffer.bytes().begin()));
  // A size that nothing stands behind.
  bytes.resize(100);
  caf::binary_deserializer cut{&context, bytes};
  EXPECT_TRUE(cut(back));
}

}  // namespace
}  // namespace troupe::remoting
