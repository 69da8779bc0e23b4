// Peers that are processes of their own, and what happens when they are killed or stopped.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/runtime/transport/transport_fixture.hpp"
#include "tests/support/child_process.hpp"

namespace troupe::transport {
namespace {

constexpr std::size_t kBulk = std::size_t{64} << 20;

/// Within what a death is to be noticed; sanitizers slow everything down.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::chrono::seconds kNoticeTime{20};
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr std::chrono::seconds kNoticeTime{20};
#else
constexpr std::chrono::seconds kNoticeTime{1};
#endif
#else
constexpr std::chrono::seconds kNoticeTime{1};
#endif

/// The child: answers "echo", sends without end after "blast" (bulk) or "flood" (small messages).
int serve(const std::string& tls) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Side side(options_of("child", tls));
  side.recorder.keep = false;
  std::atomic<PeerId> to{0};
  std::atomic<char> what{0};
  side.recorder.on_arrival = [&](PeerId peer, std::span<const std::byte> bytes, auto) {
    const std::string text = text_of(bytes);
    if (text.starts_with("echo")) (void)side.send(peer, text).ok();
    if (text == "blast" || text == "flood") what = text[0], to = peer;
  };
  if (!side.transport->start().ok()) return 1;
  fmt::print("{}\n", side.listen().port);
  std::fflush(stdout);
  while (to == 0) ::usleep(1000);
  const Buffer bulk = what == 'b' ? pattern(kBulk, 7) : Buffer{};
  for (;;) {
    const Status sent =
        what == 'b' ? side.send(to, "bulk", {bulk}) : side.send(to, "small message");
    if (!sent.ok()) ::usleep(1000);
  }
}

class Child : public ChildProcess {
public:
  explicit Child(const std::string& tls)
      : ChildProcess({tls}),
        address{"127.0.0.1", static_cast<std::uint16_t>(std::stoul("0" + line()))} {}

  const Address address;
};

class PeerProcess : public testing::TestWithParam<const char*> {
protected:
  static Options parent_options() {
    Options options = options_of("parent", GetParam());
    options.max_queued_bytes = 4 * kBulk;
    options.send_timeout = std::chrono::milliseconds(300);
    return options;
  }
  void SetUp() override {
    parent.recorder.keep = false;
    parent.start();
  }
  PeerId connect(const Child& child) {
    const auto peer = parent.connect(child.address);
    EXPECT_TRUE(peer.ok()) << to_string(peer.error());
    return peer.ok() ? *peer : 0;
  }
  /// Kills the child and waits for the news, which may take a second at most.
  void kill_and_expect_loss(Child& child, std::size_t losses = 1) {
    const auto begin = std::chrono::steady_clock::now();
    child.kill();
    ASSERT_TRUE(parent.recorder.wait_lost(losses));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kNoticeTime);
    EXPECT_EQ(parent.recorder.lost()[losses - 1].second.code, Code::unavailable);
  }
  std::atomic<bool> whole{true};
  Side parent{parent_options()};
};

TEST_P(PeerProcess, ItsDeathIsNoticedWhileIdle) {
  Child child(GetParam());
  const PeerId peer = connect(child);
  ASSERT_TRUE(parent.send(peer, "echo").ok());
  ASSERT_TRUE(parent.recorder.wait_messages(1));
  kill_and_expect_loss(child);
  EXPECT_EQ(parent.send(peer, "x").code(), Code::unavailable);
}

TEST_P(PeerProcess, ItsDeathWhileBulkGoesThereGivesTheBuffersBack) {
  const Buffer bulk = pattern(kBulk, 1);
  for (std::size_t round = 1; round <= 4; ++round) {
    Child child(GetParam());
    const PeerId peer = connect(child);
    for (int i = 0; i < 4; ++i) (void)parent.send(peer, "bulk", {bulk}).ok();
    // Let some of it arrive, so that the death comes in the middle of a transfer.
    while (parent.transport->stats().queued_bytes > (4 - round % 3) * kBulk)
      std::this_thread::yield();
    kill_and_expect_loss(child, round);
  }
  while (!bulk.unique()) std::this_thread::yield();
  EXPECT_TRUE(has_pattern(bulk, 1));
}

TEST_P(PeerProcess, ItsDeathWhileBulkComesFromThereIsNoticed) {
  std::size_t arrived = 0;
  for (std::size_t round = 1; round <= 4; ++round) {
    Child child(GetParam());
    ASSERT_TRUE(parent.send(connect(child), "blast").ok());
    arrived = parent.recorder.count() + 2;
    ASSERT_TRUE(parent.recorder.wait_messages(arrived));
    kill_and_expect_loss(child, round);
  }
}

TEST_P(PeerProcess, BulkArrivesWhole) {
  parent.recorder.on_arrival = [&](PeerId, auto, std::span<Buffer> segments) {
    if (segments.size() != 1 || !has_pattern(segments[0], 7)) whole = false;
  };
  Child child(GetParam());
  ASSERT_TRUE(parent.send(connect(child), "blast").ok());
  ASSERT_TRUE(parent.recorder.wait_messages(6));
  EXPECT_TRUE(whole);
}

TEST_P(PeerProcess, ItsDeathInAFloodDoesNotTouchOtherPeers) {
  Child witness(GetParam());
  const PeerId other = connect(witness);
  for (std::size_t round = 1; round <= 6; ++round) {
    Child child(GetParam());
    ASSERT_TRUE(parent.send(connect(child), "flood").ok());
    ASSERT_TRUE(parent.recorder.wait_messages(parent.recorder.count() + 5'000));
    kill_and_expect_loss(child, round);
    const std::size_t before = parent.recorder.count();
    ASSERT_TRUE(parent.send(other, "echo").ok());
    ASSERT_TRUE(parent.recorder.wait_messages(before + 1));
  }
  EXPECT_EQ(parent.recorder.lost().size(), 6u);
}

TEST_P(PeerProcess, AStoppedOneFillsTheQueueToItsBoundAndCatchesUpLater) {
  Child child(GetParam());
  const PeerId peer = connect(child);
  child.signal(SIGSTOP);
  const Buffer bulk = pattern(kBulk / 4, 1);
  std::size_t sent = 0;
  Status last;
  while ((last = parent.send(peer, "echo", {bulk})).ok()) ++sent;
  EXPECT_EQ(last.code(), Code::resource_exhausted);
  EXPECT_LE(parent.transport->stats().queued_bytes, 4 * kBulk);
  EXPECT_TRUE(parent.recorder.lost().empty());
  child.signal(SIGCONT);
  ASSERT_TRUE(parent.recorder.wait_messages(sent));
}

TEST_P(PeerProcess, StopDoesNotWaitForAStoppedOne) {
  Child child(GetParam());
  const PeerId peer = connect(child);
  child.signal(SIGSTOP);
  for (int i = 0; i < 3; ++i) (void)parent.send(peer, "bulk", {pattern(kBulk / 4, 1)}).ok();
  parent.transport->stop();
  EXPECT_EQ(parent.recorder.lost().at(0).second.code, Code::cancelled);
}

TEST_P(PeerProcess, ConnectingToAStoppedOneEndsAtTheDeadline) {
  Child child(GetParam());
  child.signal(SIGSTOP);
  Options options = options_of("hasty", GetParam());
  options.connect_timeout = std::chrono::milliseconds(200);
  Side hasty(options);
  hasty.start();
  EXPECT_EQ(hasty.connect(child.address).code(), Code::deadline_exceeded);
}

INSTANTIATE_TEST_SUITE_P(Over, PeerProcess, testing::Values("tcp", "tcp,posix", ""),
                         [](const auto& given) {
                           const std::string list = given.param;
                           return list.empty() ? "all" : list == "tcp" ? "tcp" : "posix";
                         });

}  // namespace
}  // namespace troupe::transport

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--child") return troupe::transport::serve(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
