#include "runtime/control/store.hpp"

#include <future>
#include <thread>

#include "tests/runtime/control/etcd_server.hpp"
#include "tests/runtime/control/store_fixture.hpp"
#include "tests/support/child_process.hpp"

namespace troupe::control {
namespace {

using Entries = std::map<std::string, std::string>;

/// What every store does, on a file and on an etcd of the test's own.
class AnyStore : public testing::TestWithParam<const char*> {
protected:
  bool on_etcd() const { return GetParam() == std::string_view("etcd"); }

  void SetUp() override {
    if (!on_etcd()) {
      address_ = "sqlite:" + (folder_ / "store.db");
      return;
    }
    if (!EtcdServer::installed()) GTEST_SKIP() << "etcd is not installed (scripts/deps test)";
    etcd_ = EtcdServer::start();
    ASSERT_NE(etcd_, nullptr);
    address_ = etcd_->address("test");
  }

  /// One that leads.
  std::unique_ptr<Store> leader(const std::string& name = "test") {
    auto store = open(address_, name);
    const auto term = store->lead(seconds(20), nullptr);
    EXPECT_TRUE(term.ok()) << to_string(term.error());
    return store;
  }

  TemporaryFolder folder_;
  std::unique_ptr<EtcdServer> etcd_;
  std::string address_;
};

TEST_P(AnyStore, gives_back_what_an_earlier_leader_wrote) {
  {
    const auto first = leader();
    EXPECT_EQ(first->read().value(), Entries{});
    first->put("a", "1");
    first->put("b", "2");
    first->put("c", "3");
    first->erase("b");
    first->erase("never there");
    ASSERT_TRUE(first->flush(seconds(20)).ok());
    EXPECT_EQ(first->read().value(), (Entries{{"a", "1"}, {"c", "3"}}));
    first->put("a", "written when it resigns");
  }
  EXPECT_EQ(leader()->read().value(), (Entries{{"a", "written when it resigns"}, {"c", "3"}}));
}

TEST_P(AnyStore, keeps_the_newest_of_many_values_for_a_key) {
  const auto store = leader();
  for (int i = 0; i < 2000; ++i) store->put(std::to_string(i % 150), std::to_string(i));
  ASSERT_TRUE(store->flush(seconds(20)).ok());
  const Entries entries = store->read().value();
  EXPECT_EQ(entries.size(), 150u);
  for (const auto& [key, value] : entries) {
    EXPECT_EQ(std::stoi(value) % 150, std::stoi(key));
    EXPECT_GE(std::stoi(value), 2000 - 150);
  }
}

TEST_P(AnyStore, keeps_any_bytes) {
  const std::string binary("\0\xff\n'\"\\ \x80\0", 9);
  std::string large(kMaxValueBytes, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 >> 3);
  const std::string key("zero\0key", 8);
  {
    const auto store = leader();
    store->put(key, binary);
    store->put("empty", "");
    store->put("large 1", large);
    store->put("large 2", large);
    ASSERT_TRUE(store->flush(seconds(20)).ok());
  }
  EXPECT_EQ(leader()->read().value(),
            (Entries{{key, binary}, {"empty", ""}, {"large 1", large}, {"large 2", large}}));
}

TEST_P(AnyStore, reads_more_keys_than_one_page_has) {
  const auto store = leader();
  for (int i = 0; i < 300; ++i) store->put("key " + std::to_string(i), "x");
  ASSERT_TRUE(store->flush(seconds(20)).ok());
  EXPECT_EQ(store->read().value().size(), 300u);
}

TEST_P(AnyStore, says_what_it_did_not_take) {
  const auto store = leader();
  store->put("large", std::string(kMaxValueBytes + 1, 'x'));
  const Status flushed = store->flush(seconds(20));
  EXPECT_EQ(flushed.code(), Code::invalid_argument);
  EXPECT_NE(flushed.error().message.find("'large' has 1048577 bytes"), std::string::npos);
  EXPECT_TRUE(store->flush(seconds(20)).ok());  // said once
}

TEST_P(AnyStore, is_not_for_those_that_do_not_lead) {
  const auto store = open(address_);
  store->put("a", "1");
  EXPECT_EQ(store->flush(seconds(20)).code(), Code::failed_precondition);
  EXPECT_EQ(store->read().code(), Code::failed_precondition);
  ASSERT_TRUE(store->lead(seconds(20), nullptr).ok());
  EXPECT_EQ(store->lead(seconds(20), nullptr).code(), Code::failed_precondition);
  EXPECT_EQ(store->read().value(), Entries{});
}

TEST_P(AnyStore, tells_a_second_who_leads) {
  const auto first = leader("head at 10.0.0.1:7000");
  const auto second = open(address_, "second");
  const auto term = second->lead(milliseconds(200), nullptr);
  ASSERT_EQ(term.code(), Code::deadline_exceeded);
  const std::string expected =
      "led by head at 10.0.0.1:7000 (process " + std::to_string(::getpid()) + ")";
  EXPECT_NE(term.error().message.find(expected), std::string::npos) << term.error().message;
}

TEST_P(AnyStore, lets_a_waiting_one_take_over_when_the_first_resigns) {
  LostRecorder lost;
  auto first = open(address_);
  const auto first_term = first->lead(seconds(20), lost.callback());
  ASSERT_TRUE(first_term.ok());
  const auto second = open(address_);
  auto second_term = std::async(std::launch::async, [&] { return second->lead(seconds(30), {}); });
  EXPECT_EQ(second_term.wait_for(milliseconds(300)), std::future_status::timeout);
  first.reset();
  const auto resigned = std::chrono::steady_clock::now();
  const auto term = second_term.get();
  ASSERT_TRUE(term.ok());
  EXPECT_GT(*term, *first_term);
  EXPECT_LT(std::chrono::steady_clock::now() - resigned, seconds(1));
  EXPECT_EQ(lost.count(), 0u);  // it resigned
}

TEST_P(AnyStore, lets_a_waiting_one_take_over_when_the_first_process_is_killed) {
  ChildProcess child({address_});
  const std::string said = child.line();
  ASSERT_TRUE(!said.empty() && said.find_first_not_of("0123456789") == std::string::npos) << said;
  const auto second = open(address_);
  auto second_term = std::async(std::launch::async, [&] { return second->lead(seconds(30), {}); });
  EXPECT_EQ(second_term.wait_for(milliseconds(500)), std::future_status::timeout);
  child.kill();
  const auto killed = std::chrono::steady_clock::now();
  const auto term = second_term.get();
  const auto took = std::chrono::steady_clock::now() - killed;
  ASSERT_TRUE(term.ok());
  EXPECT_LT(took, on_etcd() ? seconds(3) : seconds(1));
  RecordProperty("takeover_ms",
                 static_cast<int>(std::chrono::duration_cast<milliseconds>(took).count()));
  EXPECT_GT(*term, std::stoull(said));
  EXPECT_EQ(second->read().value(), (Entries{{"from", "child"}}));
}

TEST_P(AnyStore, counts_its_leaders) {
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const auto store = open(address_);
    const auto term = store->lead(seconds(20), nullptr);
    ASSERT_TRUE(term.ok());
    EXPECT_GT(*term, last);
    last = *term;
  }
}

TEST_P(AnyStore, stops_waiting_when_it_is_cancelled) {
  const auto first = leader();
  const auto second = open(address_);
  auto term =
      std::async(std::launch::async, [&] { return second->lead(Duration::max(), nullptr); });
  EXPECT_EQ(term.wait_for(milliseconds(200)), std::future_status::timeout);
  second->cancel();
  EXPECT_EQ(term.get().code(), Code::cancelled);
  EXPECT_EQ(second->lead(seconds(20), nullptr).code(), Code::cancelled);  // for good
}

TEST_P(AnyStore, takes_values_from_many_threads) {
  const auto store = leader();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&store, t] {
        for (int i = 0; i < 100; ++i) store->put(std::to_string(t), std::to_string(i));
        EXPECT_TRUE(store->flush(seconds(20)).ok());
        EXPECT_EQ(store->read().value().at(std::to_string(t)), "99");
      });
  }
  EXPECT_EQ(store->read().value().size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(On, AnyStore, testing::Values("sqlite", "etcd"),
                         [](const auto& given) { return std::string(given.param); });

}  // namespace
}  // namespace troupe::control
