#include "runtime/base/node_id.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(NodeId, two_random_ones_differ) {
  EXPECT_NE(NodeId::random(), NodeId::random());
}

TEST(NodeId, its_text_reads_back) {
  const NodeId id = NodeId::random();
  EXPECT_EQ(*NodeId::parse(to_string(id)), id);
  EXPECT_EQ(to_string(id).substr(0, 8), short_name(id));
}

TEST(NodeId, anything_but_32_hex_digits_is_refused_and_named) {
  for (const char* text :
       {"", "12", "zz000000000000000000000000000001", "00000000000000000000000000000000",
        "0123456789abcdef0123456789abcdef0"}) {
    auto id = NodeId::parse(text);
    ASSERT_FALSE(id.ok()) << text;
    EXPECT_NE(id.error().message.find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe
