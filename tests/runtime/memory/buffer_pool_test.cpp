#include "runtime/memory/buffer_pool.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(BufferPool, hands_the_same_memory_out_again) {
  BufferPool pool;
  auto* first = pool.acquire(10000).value().data();
  EXPECT_EQ(pool.acquire(10200).value().data(), first);  // same size class
  EXPECT_EQ(pool.stats().hits, 1u);
  EXPECT_EQ(pool.stats().bytes_in_use, 0u);
}

TEST(BufferPool, keeps_no_more_than_it_was_told) {
  BufferPool pool({.max_cached_bytes = 8192});
  {
    auto a = pool.acquire(4096).value();
    auto b = pool.acquire(4096).value();
    auto c = pool.acquire(4096).value();
  }
  EXPECT_EQ(pool.stats().bytes_cached, 8192u);
  pool.trim();
  EXPECT_EQ(pool.stats().bytes_cached, 0u);
}

TEST(BufferPool, refuses_above_its_bound_and_says_how_much_is_in_use) {
  BufferPool pool({.max_bytes_in_use = 8192});
  auto a = pool.acquire(4096).value();
  auto b = pool.acquire(8192);
  ASSERT_EQ(b.code(), Code::resource_exhausted);
  EXPECT_NE(b.error().message.find("4096 of at most 8192"), std::string::npos);
}

TEST(BufferPool, a_buffer_may_outlive_its_pool) {
  Buffer left;
  {
    BufferPool pool;
    left = pool.acquire(5000).value();
  }
  left.data()[4999] = std::byte{1};
  EXPECT_EQ(left.size(), 5000u);
}

}  // namespace
}  // namespace troupe
