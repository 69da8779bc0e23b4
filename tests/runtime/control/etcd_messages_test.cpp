#include "runtime/control/internal/etcd_messages.hpp"

#include <random>

#include <gtest/gtest.h>

#include "runtime/control/internal/base64.hpp"

namespace troupe::control::etcd {
namespace {

TEST(Base64, is_that_of_the_standard) {
  const std::pair<std::string, std::string> pairs[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"\xfb\xff", "+/8="},
      {std::string(2, '\0'), "AAA="},
  };
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text).value(), bytes);
  }
  std::string all;
  for (int i = 0; i < 1000; ++i) all += static_cast<char>(i);
  EXPECT_EQ(from_base64(to_base64(all)).value(), all);
}

TEST(Base64, refuses_every_other_form) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Zg==Zg==", "Z===", "Zm 8",
                           "Zm8\n", "Zm-_", "=Zm8", "Zm8\xff"})
    EXPECT_EQ(from_base64(text).code(), Code::corrupt_data) << text;
}

TEST(EtcdMessages, reads_what_etcd_answers) {
  const auto lease = parse_grant(R"({"header":{"revision":"3"},"ID":"7587","TTL":"2"})");
  EXPECT_EQ(lease.value().id, 7587);
  EXPECT_EQ(lease.value().ttl_seconds, 2);
  const auto kept = parse_keep_alive(R"({"result":{"header":{},"ID":"7587","TTL":"2"}})"
                                     "\n");
  EXPECT_EQ(kept.value().ttl_seconds, 2);
  EXPECT_EQ(parse_keep_alive(R"({"result":{"ID":"7587"}})").value().ttl_seconds, 0);  // gone

  const auto range = parse_range(
      R"({"header":{},"kvs":[{"key":"YQ==","create_revision":"4","value":"AAE=","lease":"9"},
          {"key":"Yg=="}],"more":true,"count":"3"})");
  ASSERT_EQ(range.value().keys.size(), 2u);
  EXPECT_EQ(range.value().keys[0].value, std::string("\0\1", 2));
  EXPECT_EQ(range.value().keys[0].create_revision, 4);
  EXPECT_EQ(range.value().keys[0].lease, 9);
  EXPECT_EQ(range.value().keys[1].value, "");
  EXPECT_TRUE(range.value().more);
  EXPECT_TRUE(parse_range(R"({"header":{}})").value().keys.empty());

  const auto txn = parse_txn(
      R"({"header":{"revision":"12"},"responses":[{"response_put":{}},
          {"response_range":{"kvs":[{"key":"YQ=="}]}}]})");
  EXPECT_FALSE(txn.value().succeeded);
  EXPECT_EQ(txn.value().revision, 12);
  EXPECT_EQ(txn.value().ranges.at(0).keys.at(0).key, "a");
}

TEST(EtcdMessages, writes_what_etcd_takes) {
  EXPECT_EQ(grant_request(2), R"({"TTL":"2"})");
  EXPECT_EQ(lease_request(-5), R"({"ID":"-5"})");
  EXPECT_EQ(
      Txn()
          .if_created_at("a", 4)
          .if_value_less("a", "1")
          .then_put("b", "2", 9)
          .then_erase("c")
          .else_get("a")
          .request(),
      R"({"compare":[{"key":"YQ==","target":"CREATE","result":"EQUAL","create_revision":"4"},)"
      R"({"key":"YQ==","target":"VALUE","result":"LESS","value":"MQ=="}],)"
      R"("success":[{"request_put":{"key":"Yg==","value":"Mg==","lease":"9"}},)"
      R"({"request_delete_range":{"key":"Yw=="}}],)"
      R"("failure":[{"request_range":{"key":"YQ=="}}]})");
}

TEST(EtcdMessages, says_what_a_refusal_means) {
  EXPECT_EQ(parse_refusal(400, R"({"error":"etcdserver: request is too large","code":3})").code,
            Code::invalid_argument);
  EXPECT_EQ(parse_refusal(404, R"({"message":"requested lease not found","code":5})").code,
            Code::not_found);
  EXPECT_EQ(parse_refusal(401, R"({"error":"invalid auth token","code":16})").code,
            Code::permission_denied);
  EXPECT_EQ(parse_refusal(503, R"({"error":"no leader","code":14})").code, Code::unavailable);
  EXPECT_EQ(parse_refusal(502, "<html>").code, Code::unavailable);
  EXPECT_EQ(parse_refusal(404, "404 page not found\n").code, Code::protocol_error);
  EXPECT_NE(parse_refusal(429, R"({"error":"database space exceeded","code":8})")
                .message.find("database space exceeded"),
            std::string::npos);
  EXPECT_EQ(parse_keep_alive(R"({"error":{"grpc_code":14,"message":"no leader"}})").code(),
            Code::unavailable);
}

TEST(EtcdMessages, nonsense_is_an_error) {
  for (const char* text :
       {"", "{", "null", "[]", "7", "\"x\"", "\xff\xfe", "{\"ID\":{}}", "{\"ID\":\"1x\"}",
        "{\"ID\":1e99,\"TTL\":\"2\"}", "{\"ID\":18446744073709551615,\"TTL\":\"2\"}",
        "{\"ID\":\"99999999999999999999\"}", "{\"ID\":\"1\",\"TTL\":\"99999999999\"}"}) {
    EXPECT_FALSE(parse_grant(text).ok()) << text;
    EXPECT_FALSE(parse_keep_alive(text).ok()) << text;
    EXPECT_FALSE(parse_txn(text).ok()) << text;
  }
  for (const char* text :
       {R"({"kvs":{}})", R"({"kvs":[7]})", R"({"kvs":[{"key":7}]})", R"({"kvs":[{"key":"!"}]})",
        R"({"more":"yes"})", R"({"kvs":[{"key":"YQ==","lease":[]}]})"})
    EXPECT_FALSE(parse_range(text).ok()) << text;
  for (const char* text :
       {R"({"succeeded":1,"header":{"revision":"1"}})", R"({"header":{"revision":"-1"}})",
        R"({"header":7})", R"({"header":{"revision":"1"},"responses":7})",
        R"({"header":{"revision":"1"},"responses":[{"response_range":{"kvs":7}}]})"})
    EXPECT_FALSE(parse_txn(text).ok()) << text;
  const std::string deep(1 << 20, '[');
  EXPECT_FALSE(parse_range(deep).ok());
  EXPECT_FALSE(parse_range("{\"kvs\":" + deep).ok());
}

TEST(EtcdMessages, damaged_answers_do_no_harm) {
  const std::string whole =
      R"({"header":{"revision":"12"},"succeeded":true,"ID":"5","TTL":"2","result":{"ID":"5"},)"
      R"("kvs":[{"key":"YQ==","create_revision":"4","value":"AAE="}],)"
      R"("responses":[{"response_range":{"kvs":[{"key":"YQ==","value":"AAE="}]}}]})";
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, 1 + random() % 8);
      } else {
        text[at] = static_cast<char>(random());
      }
      if (text.empty()) break;
    }
    (void)parse_grant(text).ok();
    (void)parse_keep_alive(text).ok();
    (void)parse_range(text).ok();
    (void)parse_txn(text).ok();
    (void)parse_refusal(500, text);
  }
}

}  // namespace
}  // namespace troupe::control::etcd
