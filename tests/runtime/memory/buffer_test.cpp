#include "runtime/memory/buffer.hpp"

#include <cstring>

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Buffer, is_aligned_and_as_long_as_asked) {
  auto buffer = Buffer::allocate(100).value();
  EXPECT_EQ(buffer.size(), 100u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % Buffer::kAlignment, 0u);
  EXPECT_EQ(buffer.kind(), MemoryKind::host);
}

TEST(Buffer, of_no_bytes_is_empty) {
  EXPECT_TRUE(Buffer::allocate(0).value().empty());
}

TEST(Buffer, that_no_machine_can_hold_is_an_error_that_says_its_size) {
  auto buffer = Buffer::allocate(std::size_t{1} << 60);
  ASSERT_EQ(buffer.code(), Code::resource_exhausted);
  EXPECT_NE(buffer.error().message.find("1152921504606846976"), std::string::npos);
}

TEST(Buffer, a_slice_shares_the_bytes_and_keeps_them_alive) {
  Buffer tail;
  {
    auto whole = Buffer::allocate(16).value();
    std::memset(whole.data(), 7, 16);
    tail = whole.slice(8, 8);
    EXPECT_FALSE(whole.unique());
  }
  EXPECT_TRUE(tail.unique());
  EXPECT_EQ(tail.data()[7], std::byte{7});
}

TEST(Buffer, wrapped_bytes_release_their_owner_last) {
  bool released = false;
  std::byte bytes[4];
  {
    std::shared_ptr<void> owner(bytes, [&](void*) { released = true; });
    auto buffer = Buffer::wrap(std::move(owner), bytes, sizeof bytes, MemoryKind::shared);
    EXPECT_EQ(buffer.kind(), MemoryKind::shared);
    EXPECT_FALSE(released);
  }
  EXPECT_TRUE(released);
}

TEST(BufferDeathTest, a_slice_outside_aborts_with_its_numbers) {
  auto buffer = Buffer::allocate(8).value();
  EXPECT_DEATH(buffer.slice(4, 5), "slice 4\\+5 of a buffer of 8 bytes");
}

}  // namespace
}  // namespace troupe
