#include "runtime/control/internal/writer.hpp"

#include <deque>
#include <thread>

#include "tests/runtime/control/store_fixture.hpp"

namespace troupe::control {
namespace {

/// A store that fails and halts when it is told to. Threads: any.
class FakeBackend {
public:
  Status write(const Changes& changes) {
    MutexLock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    while (halted_) changed_.wait(mutex_);
    if (!errors_.empty()) {
      const Error error = errors_.front();
      if (errors_.size() > 1 || !forever_) errors_.pop_front();
      return error;
    }
    written_.push_back(changes);
    return {};
  }
  void halt(bool halted) {
    MutexLock lock(mutex_);
    halted_ = halted;
    changed_.notify_all();
  }
  void fail(Error error, bool forever = false) {
    MutexLock lock(mutex_);
    errors_.push_back(std::move(error));
    forever_ = forever;
  }
  void wait_begun(int count) {
    MutexLock lock(mutex_);
    while (begun_ < count) changed_.wait(mutex_);
  }
  std::vector<Changes> written() {
    MutexLock lock(mutex_);
    return written_;
  }

private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Changes> written_ TROUPE_GUARDED_BY(mutex_);
  std::deque<Error> errors_ TROUPE_GUARDED_BY(mutex_);
  bool forever_ TROUPE_GUARDED_BY(mutex_) = false;
  bool halted_ TROUPE_GUARDED_BY(mutex_) = false;
  int begun_ TROUPE_GUARDED_BY(mutex_) = 0;
};

class WriterTest : public testing::Test {
protected:
  Writer::Options options() {
    return {.write = [this](const Changes& changes) { return backend_.write(changes); },
            .period = seconds(20)};  // only a flush or a full batch hurries
  }
  FakeBackend backend_;
};

TEST_F(WriterTest, writes_the_first_at_once_and_collects_the_rest) {
  Writer writer(options());
  writer.start();
  backend_.halt(true);
  writer.put("a", "1");
  backend_.wait_begun(1);  // without a flush
  writer.put("a", "2");
  writer.put("b", "1");
  writer.put("a", "3");
  writer.put("b", std::nullopt);
  backend_.halt(false);
  ASSERT_TRUE(writer.flush(seconds(20)).ok());
  EXPECT_EQ(backend_.written(),
            (std::vector<Changes>{{{"a", "1"}}, {{"a", "3"}, {"b", std::nullopt}}}));
}

TEST_F(WriterTest, keeps_to_the_bounds_of_a_batch_and_to_the_order) {
  auto bounded = options();
  bounded.max_changes = 2;
  bounded.max_bytes = 10;
  Writer writer(bounded);
  writer.start();
  backend_.halt(true);
  writer.put("first", "");
  backend_.wait_begun(1);
  writer.put("a", "1");
  writer.put("b", "1");
  writer.put("c", "1");
  writer.put("a", "2");
  writer.put("d", std::string(50, 'x'));
  writer.put("d", std::string(60, 'x'));
  writer.put("e", "1");
  backend_.halt(false);
  ASSERT_TRUE(writer.flush(seconds(20)).ok());
  EXPECT_EQ(backend_.written(), (std::vector<Changes>{{{"first", ""}},
                                                      {{"a", "1"}, {"b", "1"}},
                                                      {{"a", "2"}, {"c", "1"}},
                                                      {{"d", std::string(60, 'x')}},
                                                      {{"e", "1"}}}));
}

TEST_F(WriterTest, tries_again_what_failed_before_what_came_later) {
  Writer writer(options());
  writer.start();
  backend_.fail({Code::unavailable, "away"});
  backend_.fail({Code::unavailable, "away"});
  backend_.halt(true);
  writer.put("a", "1");
  backend_.wait_begun(1);
  writer.put("b", "2");
  backend_.halt(false);
  ASSERT_TRUE(writer.flush(seconds(20)).ok());
  EXPECT_EQ(backend_.written(), (std::vector<Changes>{{{"a", "1"}}, {{"b", "2"}}}));
}

TEST_F(WriterTest, says_why_it_cannot_write) {
  Writer writer(options());
  writer.start();
  backend_.fail({Code::io_error, "disk full"}, /*forever=*/true);
  writer.put("a", "1");
  const Status flushed = writer.flush(milliseconds(100));
  EXPECT_EQ(flushed.code(), Code::io_error);
  EXPECT_EQ(flushed.error().message, "disk full");
}

TEST_F(WriterTest, says_how_much_waits_when_the_time_is_over) {
  Writer writer(options());
  writer.start();
  backend_.halt(true);
  writer.put("a", "1");
  const Status flushed = writer.flush(milliseconds(20));
  EXPECT_EQ(flushed.code(), Code::deadline_exceeded);
  EXPECT_NE(flushed.error().message.find("1 changes"), std::string::npos);
  backend_.halt(false);
}

TEST_F(WriterTest, gives_up_when_it_is_abandoned) {
  Writer writer(options());
  writer.start();
  backend_.fail({Code::unavailable, "away"}, /*forever=*/true);
  writer.put("a", "1");
  std::thread abandons([&] {
    backend_.wait_begun(1);
    writer.abandon({Code::unavailable, "lost"});
  });
  EXPECT_EQ(writer.flush(seconds(20)).error().message, "lost");
  abandons.join();
  writer.put("b", "1");
  EXPECT_EQ(writer.flush(seconds(20)).error().message, "lost");
  EXPECT_TRUE(backend_.written().empty());
}

TEST_F(WriterTest, refuses_keys_out_of_bounds) {
  Writer writer(options());
  writer.start();
  for (const auto& key : {std::string(), std::string(kMaxKeyBytes + 1, 'k')}) {
    writer.put(key, "1");
    EXPECT_EQ(writer.flush(seconds(20)).code(), Code::invalid_argument);
  }
  EXPECT_TRUE(backend_.written().empty());
}

}  // namespace
}  // namespace troupe::control
