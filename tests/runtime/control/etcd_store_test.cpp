#include <csignal>
#include <future>

#include <fmt/format.h>

#include "runtime/control/internal/base64.hpp"
#include "runtime/control/internal/etcd_messages.hpp"
#include "runtime/control/store.hpp"
#include "tests/runtime/control/etcd_server.hpp"
#include "tests/runtime/control/store_fixture.hpp"
#include "tests/support/child_process.hpp"

namespace troupe::control {
namespace {

class EtcdStoreTest : public testing::Test {
protected:
  void SetUp() override {
    if (!EtcdServer::installed()) GTEST_SKIP() << "etcd is not installed (scripts/deps test)";
    etcd_ = EtcdServer::start();
    ASSERT_NE(etcd_, nullptr);
  }

  etcd::KeyValue get(const std::string& key) const {
    return etcd::parse_range(etcd_->post("/v3/kv/range", etcd::range_request(key)))
        .value()
        .keys.at(0);
  }

  std::unique_ptr<EtcdServer> etcd_;
};

TEST_F(EtcdStoreTest, is_lost_before_another_leads_while_etcd_does_not_answer) {
  LostRecorder lost;
  const auto first = open(etcd_->address("test"));
  const auto term = first->lead(seconds(20), lost.callback());
  ASSERT_TRUE(term.ok());
  const auto second = open(etcd_->address("test"));
  ASSERT_EQ(second->lead(milliseconds(1), nullptr).code(), Code::deadline_exceeded);

  etcd_->signal(SIGSTOP);
  const auto stopped = std::chrono::steady_clock::now();
  first->put("a", "1");
  const auto why = lost.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, seconds(2));  // the lease
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->code, Code::unavailable);
  EXPECT_EQ(first->read().code(), Code::failed_precondition);
  EXPECT_FALSE(first->flush(seconds(20)).ok());

  etcd_->signal(SIGCONT);
  const auto next = second->lead(seconds(20), nullptr);
  ASSERT_TRUE(next.ok()) << to_string(next.error());
  EXPECT_GT(*next, *term);
  EXPECT_EQ(lost.count(), 1u);
}

TEST_F(EtcdStoreTest, is_lost_when_its_process_was_paused_and_overtaken) {
  ChildProcess child({etcd_->address("test")});
  const std::string said = child.line();
  child.signal(SIGSTOP);
  const auto second = open(etcd_->address("test"));
  const auto term = second->lead(seconds(20), nullptr);
  ASSERT_TRUE(term.ok());
  EXPECT_GT(*term, std::stoull(said));
  child.signal(SIGCONT);
  EXPECT_EQ(child.line(), "lost");
  EXPECT_EQ(second->read().value().at("from"), "child");
}

TEST_F(EtcdStoreTest, outlives_a_pause_of_etcd_that_is_shorter_than_the_lease) {
  LostRecorder lost;
  const auto store = open_store(etcd_->address("test"), {.leader = "test", .lease = seconds(8)});
  ASSERT_TRUE((*store)->lead(seconds(20), lost.callback()).ok());
  etcd_->signal(SIGSTOP);
  (*store)->put("a", "1");
  EXPECT_FALSE((*store)->flush(milliseconds(1500)).ok());
  etcd_->signal(SIGCONT);
  EXPECT_TRUE((*store)->flush(seconds(20)).ok());
  EXPECT_EQ((*store)->read().value().at("a"), "1");
  EXPECT_EQ(lost.count(), 0u);
}

TEST_F(EtcdStoreTest, is_lost_when_its_lease_is_revoked_and_writes_no_more) {
  LostRecorder lost;
  const auto first = open(etcd_->address("test"));
  ASSERT_TRUE(first->lead(seconds(20), lost.callback()).ok());
  first->put("a", "first");
  ASSERT_TRUE(first->flush(seconds(20)).ok());

  ASSERT_FALSE(
      etcd_->post("/v3/lease/revoke", etcd::lease_request(get("test/leader").lease)).empty());
  first->put("a", "too late");
  EXPECT_FALSE(first->flush(seconds(20)).ok());
  ASSERT_TRUE(lost.wait().has_value());
  EXPECT_EQ(get("test/data/a").value, "first");
  EXPECT_EQ(lost.count(), 1u);
}

TEST_F(EtcdStoreTest, notices_a_revoked_lease_without_writing) {
  LostRecorder lost;
  const auto store = open(etcd_->address("test"));
  ASSERT_TRUE(store->lead(seconds(20), lost.callback()).ok());
  ASSERT_FALSE(
      etcd_->post("/v3/lease/revoke", etcd::lease_request(get("test/leader").lease)).empty());
  const auto why = lost.wait();
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->code, Code::unavailable);
}

TEST_F(EtcdStoreTest, does_not_do_an_earlier_request_after_a_later_one) {
  const auto store = open(etcd_->address("test"));
  ASSERT_TRUE(store->lead(seconds(20), nullptr).ok());
  for (const char* value : {"old", "new"}) {
    store->put("a", value);
    ASSERT_TRUE(store->flush(seconds(20)).ok());
  }
  // What the first request looks like, if its answer never came and etcd does it late.
  const auto leader = get("test/leader");
  const std::string earlier = fmt::format("{:020} {}", 1, leader.value.substr(21));
  etcd::Txn txn;
  txn.if_created_at("test/leader", leader.create_revision)
      .if_value_less("test/leader", earlier)
      .then_put("test/data/a", "old");
  const auto result = etcd::parse_txn(etcd_->post("/v3/kv/txn", txn.request()));
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->succeeded);
  EXPECT_EQ(store->read().value().at("a"), "new");
}

TEST_F(EtcdStoreTest, stores_of_other_prefixes_are_other_stores) {
  const auto one = open(etcd_->address("test"));
  const auto other = open(etcd_->address("test2"));
  ASSERT_TRUE(one->lead(seconds(20), nullptr).ok());
  ASSERT_TRUE(other->lead(seconds(20), nullptr).ok());
  one->put("a", "1");
  ASSERT_TRUE(one->flush(seconds(20)).ok());
  EXPECT_TRUE(other->read().value().empty());
}

TEST_F(EtcdStoreTest, tries_its_endpoints_in_turn) {
  std::string address = etcd_->address("test");
  address.insert(std::string_view("etcd://").size(), fmt::format("127.0.0.1:{},", free_port()));
  const auto store = open(address);
  ASSERT_TRUE(store->lead(seconds(20), nullptr).ok());
  store->put("a", "1");
  EXPECT_TRUE(store->flush(seconds(20)).ok());
  EXPECT_EQ(store->read().value().at("a"), "1");
}

TEST_F(EtcdStoreTest, waits_on_while_etcd_is_away) {
  const auto first = open(etcd_->address("test"));
  ASSERT_TRUE(first->lead(seconds(20), nullptr).ok());
  const auto second = open(etcd_->address("test"));
  auto term = std::async(std::launch::async, [&] { return second->lead(seconds(60), nullptr); });
  EXPECT_EQ(term.wait_for(milliseconds(300)), std::future_status::timeout);
  etcd_->signal(SIGSTOP);
  EXPECT_EQ(term.wait_for(milliseconds(2500)), std::future_status::timeout);
  etcd_->signal(SIGCONT);
  EXPECT_TRUE(term.get().ok());
}

TEST(UnreachableEtcd, is_unavailable_at_once) {
  const std::string address = fmt::format("etcd://127.0.0.1:{}/test", free_port());
  const auto term = open(address)->lead(Duration::max(), nullptr);
  ASSERT_EQ(term.code(), Code::unavailable);
  EXPECT_NE(term.error().message.find("cannot be reached"), std::string::npos);
}

}  // namespace
}  // namespace troupe::control
