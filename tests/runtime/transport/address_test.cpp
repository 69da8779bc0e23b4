#include <gtest/gtest.h>

#include "runtime/transport/transport.hpp"

namespace troupe::transport {
namespace {

TEST(Address, IsReadBackFromItsText) {
  for (const char* text : {"127.0.0.1:4000", "head.example.org:1", "[::1]:65535", "[fe80::1]:0"})
    EXPECT_EQ(to_string(Address::parse(text).value()), text);
}

TEST(Address, RefusesWhatIsNoneAndSaysWhatIsWanted) {
  for (const char* text :
       {"", ":", "host", "host:", ":80", "host:65536", "host:-1", "host:8x", "a:b:80", "::1:80",
        "[::1]", "[::1:80", "[name]:80", "a host:80", "host: 80"}) {
    const auto address = Address::parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.code(), Code::invalid_argument);
    EXPECT_NE(address.error().message.find("HOST:PORT"), std::string::npos);
  }
}

TEST(Address, OfThisHostIsTheOneThatReachesTheOther) {
  EXPECT_EQ(local_host_towards({"127.0.0.1", 4000}).value(), "127.0.0.1");
  EXPECT_EQ(local_host_towards({"no such host", 4000}).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace troupe::transport
