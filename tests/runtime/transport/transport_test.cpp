// What does not depend on which transport UCX takes.
#include <atomic>
#include <csignal>
#include <thread>

#include <dlfcn.h>
#include <fmt/format.h>

#include "tests/runtime/transport/transport_fixture.hpp"

namespace troupe::transport {
namespace {

TEST(Transport, NeedsANodeId) {
  EXPECT_EQ(make_ucx_transport({}).code(), Code::invalid_argument);
}

TEST(Transport, AnUnknownUcxTransportIsAnErrorThatNamesIt) {
  auto transport = make_ucx_transport(options_of("a", "nonsense")).value();
  const Status started = transport->start();
  EXPECT_EQ(started.code(), Code::io_error);
  EXPECT_NE(started.error().message.find("nonsense"), std::string::npos);
}

TEST(Transport, APortInUseIsAnErrorThatNamesIt) {
  Side a(options_of("a")), b(options_of("b"));
  a.start();
  b.start();
  const Address taken = a.listen();
  const auto again = b.transport->listen(taken);
  ASSERT_EQ(again.code(), Code::address_in_use);
  EXPECT_NE(again.error().message.find(to_string(taken)), std::string::npos);
}

TEST(Transport, DoesNotListenToTheWorldWithoutAToken) {
  Side a(options_of("a"));
  a.start();
  const auto bound = a.transport->listen({"0.0.0.0", 0});
  ASSERT_EQ(bound.code(), Code::permission_denied);
  EXPECT_NE(bound.error().message.find("token"), std::string::npos);
}

TEST(Transport, AHostThatCannotBeResolvedIsAnError) {
  Side a(options_of("a"));
  a.start();
  EXPECT_EQ(a.connect({"no.such.host.invalid", 1}).code(), Code::invalid_argument);
  EXPECT_FALSE(a.transport->listen({"no.such.host.invalid", 1}).ok());
}

TEST(Transport, WrongTokensAreRefusedOnTheConnectingSide) {
  Options first = options_of("a"), second = options_of("b");
  first.token = "one";
  second.token = "another";
  Side a(first), b(second);
  a.start();
  b.start();
  const auto peer = a.connect(b.listen());
  EXPECT_EQ(peer.code(), Code::permission_denied);
  EXPECT_TRUE(b.recorder.connected().empty());
}

TEST(Transport, EqualTokensConnect) {
  Options first = options_of("a"), second = options_of("b");
  first.token = second.token = "one";
  Pair pair(std::move(first), std::move(second));
  pair.connect();
}

TEST(Transport, ConnectsWhereOnlyOneSideWantsSharedMemory) {
  Options first = options_of("a"), second = options_of("b");
  first.shared_memory = false;
  Pair pair(std::move(first), std::move(second));
  pair.connect();
  ASSERT_TRUE(pair.a.send(pair.to_b, "x", {pattern(1 << 20, 1)}).ok());
  ASSERT_TRUE(pair.b.send(pair.to_a, "y", {pattern(1 << 20, 2)}).ok());
  ASSERT_TRUE(pair.b.recorder.wait_messages(1) && pair.a.recorder.wait_messages(1));
  EXPECT_TRUE(has_pattern(pair.b.recorder.messages()[0].segments[0], 1));
  EXPECT_TRUE(has_pattern(pair.a.recorder.messages()[0].segments[0], 2));
}

TEST(Transport, SharedMemoryWithoutReadsOfOtherProcessesWorks) {
  Pair pair("tcp,posix");
  pair.connect();
  ASSERT_TRUE(pair.a.send(pair.to_b, "x", {pattern(9 << 20, 1)}).ok());
  ASSERT_TRUE(pair.b.recorder.wait_messages(1));
  EXPECT_TRUE(has_pattern(pair.b.recorder.messages()[0].segments[0], 1));
}

TEST(Transport, SendToANumberThatNeverWasIsAnError) {
  Side a(options_of("a"));
  a.start();
  EXPECT_EQ(a.send(1, "x").code(), Code::invalid_argument);
  EXPECT_EQ(a.send(~0ull, "x").code(), Code::invalid_argument);
}

TEST(Transport, LeavesTheSignalsOfTheProgramAlone) {
  Side a(options_of("a"));
  a.start();
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction action {};
    ASSERT_EQ(::sigaction(signal, nullptr, &action), 0);
    Dl_info info{};
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
    if (::dladdr(reinterpret_cast<void*>(action.sa_handler), &info) == 0) continue;
    EXPECT_EQ(std::string_view(info.dli_fname).find("libucs"), std::string_view::npos) << signal;
  }
}

TEST(Transport, ConnectAfterStopIsCancelled) {
  Side a(options_of("a"));
  a.start();
  a.transport->stop();
  EXPECT_EQ(a.connect({"127.0.0.1", 1}).code(), Code::cancelled);
}

TEST(Transport, RunsPostedTasksOnTheProgressThreadInOrder) {
  Promise<std::string> done;
  std::string order;  // touched by the progress thread only
  Side a(options_of("a"));
  a.start();
  a.transport->post([&] { order += a.transport->on_progress_thread() ? "1" : "?"; });
  const auto now = std::chrono::steady_clock::now();
  a.transport->post_at(now + std::chrono::milliseconds(20), [&] { order += "4", done.set(order); });
  a.transport->post_at(now + std::chrono::milliseconds(1), [&] { order += "3"; });
  a.transport->post([&] { order += "2"; });
  EXPECT_EQ(done.get(), "1234");
}

TEST(Transport, SleepsWhileNothingHappens) {
  Promise<std::uint64_t> later;
  Pair pair("");
  pair.connect();
  // Every way out of the sleep counts one; a quarter of a second of idling takes but a few.
  const auto wait = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
  pair.a.transport->post_at(wait, [] {});
  pair.b.transport->post_at(wait, [&] { later.set(pair.a.transport->stats().sleeps); });
  EXPECT_LT(later.get(), 100u);
}

/// `work` runs inline at the arrival of each message.
struct InlinePair : Pair {
  InlinePair() : Pair("") {
    b.recorder.on_arrival = [this](PeerId peer, std::span<const std::byte> bytes, auto) {
      const std::string text = text_of(bytes);
      from = peer;
      const bool taken =
          b.transport->run_inline([this, text] { work(text); }, [this, text] { overflow(text); });
      if (!taken) declined(text);
    };
  }
  std::atomic<PeerId> from{0};
  ~InlinePair() { b.transport->stop(); }  // before what its thread may call
  std::function<void(const std::string&)> work, overflow = [](auto&) {}, declined = [](auto&) {};
};

TEST(RunInline, RunsWorkOnTheThreadOfItsMessage) {
  InlinePair pair;
  pair.work = [&](const std::string& text) {
    EXPECT_TRUE(pair.b.transport->on_progress_thread());
    EXPECT_TRUE(pair.b.send(pair.from, text + "!").ok());
  };
  pair.connect();
  for (std::size_t i = 1; i <= 500; ++i) {
    ASSERT_TRUE(pair.a.send(pair.to_b, "x").ok());
    ASSERT_TRUE(pair.a.recorder.wait_messages(i));
  }
}

TEST(RunInline, LongWorkDoesNotStopTheTransport) {
  Promise<bool> began, released, over;
  InlinePair pair;
  pair.work = [&](const std::string& text) {
    if (text != "long") return;
    began.set(true);
    released.get();  // ends only once the transport has delivered the other message
    EXPECT_FALSE(pair.b.transport->on_progress_thread());
    over.set(true);
  };
  pair.connect();
  ASSERT_TRUE(pair.a.send(pair.to_b, "long").ok());
  ASSERT_TRUE(began.get());
  ASSERT_TRUE(pair.a.send(pair.to_b, "other").ok());
  ASSERT_TRUE(pair.b.recorder.wait_messages(2));
  released.set(true);
  over.get();
  // And again, with the threads' parts exchanged.
  for (std::size_t i = 3; i < 50; ++i) {
    ASSERT_TRUE(pair.a.send(pair.to_b, "short").ok());
    ASSERT_TRUE(pair.b.recorder.wait_messages(i));
  }
}

TEST(RunInline, WorkThatWaitsBehindLongWorkOverflows) {
  Promise<bool> released, overflowed;
  InlinePair pair;
  pair.work = [&](const std::string& text) {
    if (text == "long") released.get();
  };
  pair.overflow = [&](const std::string& text) {
    if (text == "behind") overflowed.set(true);
  };
  pair.declined = pair.overflow;  // comes too late to be taken at all: fine as well
  pair.connect();
  ASSERT_TRUE(pair.a.send(pair.to_b, "long").ok());
  ASSERT_TRUE(pair.a.send(pair.to_b, "behind").ok());
  EXPECT_TRUE(overflowed.get());
  released.set(true);
}

TEST(RunInline, WorkThatMakesMoreWorkGoesOnWithoutAnyEventToWakeFor) {
  Promise<bool> over;
  InlinePair pair;
  std::function<void(int)> link = [&](int left) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(60);
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    if (left == 0) return over.set(true);
    const auto next = [&link, left] { link(left - 1); };
    if (!pair.b.transport->run_inline(next, next)) next();
  };
  pair.work = [&](const std::string&) { link(300); };  // a series ends long before that
  pair.connect();
  ASSERT_TRUE(pair.a.send(pair.to_b, "x").ok());
  EXPECT_TRUE(over.get());
  pair.b.transport->stop();
}

TEST(RunInline, TheLeadComesBackTimeAndAgain) {
  std::atomic<int> ran{0};
  InlinePair pair;
  pair.work = [&](const std::string& text) {
    ++ran;
    if (text == "long") {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
      while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    }
  };
  pair.overflow = [&](const std::string&) { ++ran; };
  pair.declined = pair.overflow;
  pair.connect();
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(pair.a.send(pair.to_b, i % 10 == 0 ? "long" : "short").ok());
  ASSERT_TRUE(pair.b.recorder.wait_messages(300));
  pair.b.transport->stop();
  EXPECT_EQ(ran, 300);
}

TEST(RunInline, DeclinesIfTheOptionsSaySo) {
  Options options = options_of("a");
  options.run_inline = false;
  Side a(options);
  a.start();
  EXPECT_FALSE(a.transport->run_inline([] {}, [] {}));
}

}  // namespace
}  // namespace troupe::transport
