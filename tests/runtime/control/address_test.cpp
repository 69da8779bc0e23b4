#include "runtime/control/internal/address.hpp"

#include <gtest/gtest.h>

#include "runtime/control/store.hpp"

namespace troupe::control {
namespace {

TEST(StoreAddress, is_a_path_or_an_etcd_with_a_prefix) {
  for (const char* text : {"sqlite:/var/lib/store.db", "/var/lib/store.db"})
    EXPECT_EQ(std::get<SqliteAddress>(parse_address(text).value()).path, "/var/lib/store.db");
  const auto etcd = std::get<EtcdAddress>(
      parse_address("etcd://a:2379,[::1]:2380,10.0.0.1:1/troupe/prod/").value());
  EXPECT_EQ(etcd.endpoints, (std::vector<Endpoint>{{"a", 2379}, {"::1", 2380}, {"10.0.0.1", 1}}));
  EXPECT_EQ(etcd.prefix, "troupe/prod");
}

TEST(StoreAddress, is_refused_with_the_forms_there_are) {
  for (const char* text :
       {"", "sqlite:", "sqlite:folder/", "http://a:1/x", "etcd://", "etcd://a:1", "etcd://a:1/",
        "etcd://a/x", "etcd://a:0/x", "etcd://a:65536/x", "etcd://a:1,/x", "etcd://:1/x",
        "etcd://u@a:1/x", "etcd://a:1x/x", "etcd://a:1/x y", "etcd://a b:1/x", "etcd://a:b:1/x",
        "etcd:a:1/x", "SQLITE:x"}) {
    const auto store = open_store(text);
    ASSERT_EQ(store.code(), Code::invalid_argument) << text;
    EXPECT_NE(store.error().message.find('"' + std::string(text) + '"'), std::string::npos);
    EXPECT_NE(store.error().message.find("etcd://HOST:PORT[,HOST:PORT...]/PREFIX"),
              std::string::npos);
  }
}

TEST(StoreAddress, options_are_checked) {
  const auto store = open_store("x.db", {.leader = "a", .lease = std::chrono::milliseconds(10)});
  ASSERT_EQ(store.code(), Code::invalid_argument);
  EXPECT_NE(store.error().message.find("lease of 10 ms"), std::string::npos);
}

}  // namespace
}  // namespace troupe::control
