// What the transport costs between two processes of this host, over TCP and over shared memory: a
// round trip, small messages one way, and a 64 MiB segment. Beside each, in the same run, what
// ucx_perftest measures on the same transports, if it is on the PATH.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/perftest.hpp"
#include "runtime/transport/transport.hpp"

namespace {

using namespace troupe;             // NOLINT: a program of one file
using namespace troupe::transport;  // NOLINT
using namespace troupe::bench;      // NOLINT

constexpr std::size_t kSmall = 64;
constexpr std::size_t kLarge = std::size_t{64} << 20;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Summary {
  double median = 0, low = 0, high = 0;
};
Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// The other process: sends back messages that begin with 'p', counts those that begin with 'c',
/// and answers one that begins with 'q' once it comes (so after all before it).
class Server final : public Handler {
public:
  Transport* transport = nullptr;
  void on_connected(PeerId, const PeerInfo&) override {}
  void on_message(PeerId peer, std::span<const std::byte> bytes, std::span<Buffer>) override {
    const auto kind = static_cast<char>(bytes.empty() ? std::byte{0} : bytes[0]);
    if (kind == 'p' || kind == 'q')
      (void)transport->send(peer, Channel::actors, bytes, {}, {}).ok();
  }
  void on_lost(PeerId, const Error&) override { ::_exit(0); }
};

class Client final : public Handler {
public:
  Transport* transport = nullptr;
  std::string ping;
  std::vector<float> round_trips;  ///< us; read once `left` is 0
  std::atomic<long> left{0};
  std::atomic<long> answers{0};
  std::atomic<bool> over{false};

  void on_connected(PeerId, const PeerInfo&) override {}
  void on_message(PeerId peer, std::span<const std::byte> bytes, std::span<Buffer>) override {
    if (static_cast<char>(bytes[0]) == 'q') {
      answers.fetch_add(1);
      return;
    }
    const double now = now_s();
    round_trips.push_back(static_cast<float>((now - sent_at) * 1e6));
    sent_at = now;
    if (left.fetch_sub(1) > 1)
      (void)transport->send(peer, Channel::actors, as_bytes(ping), {}, {}).ok();
  }
  void on_lost(PeerId, const Error& reason) override {
    if (over) return;
    std::fprintf(stderr, "lost the other process: %s\n", reason.message.c_str());
    std::exit(1);
  }
  double sent_at = 0;
};

Options bench_options(const std::string& tls) {
  Options options;
  options.node = NodeId::random();
  options.tls = tls;
  return options;
}

int serve(const std::string& tls) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto transport = make_ucx_transport(bench_options(tls)).value();
  Server server;
  server.transport = transport.get();
  transport->set_handler(Channel::actors, server);
  const Status started = transport->start();
  if (!started.ok()) return std::fprintf(stderr, "%s\n", started.error().message.c_str()), 1;
  std::printf("%u\n", transport->listen({"127.0.0.1", 0}).value().port);
  std::fflush(stdout);
  for (;;) ::pause();
}

struct Result3 {
  Summary round_trip_us, messages_per_s, bytes_per_s;
};

Result3 measure(const std::string& tls, int runs) {
  Child child({"/proc/self/exe", "--serve", tls});
  const auto port = static_cast<std::uint16_t>(std::atoi(child.line().c_str()));
  Client client;
  client.ping = "p" + std::string(kSmall - 1, '.');
  auto transport = make_ucx_transport(bench_options(tls)).value();
  client.transport = transport.get();
  transport->set_handler(Channel::actors, client);
  if (!transport->start().ok() || port == 0) std::exit(1);
  std::atomic<PeerId> peer{0};
  transport->connect({"127.0.0.1", port}, [&](Result<PeerId> done) { peer = done.value(); });
  while (peer == 0) std::this_thread::yield();

  const auto await_answer = [&](long answers) {
    (void)transport->send(peer, Channel::actors, as_bytes("q"), {}, {}).ok();
    while (client.answers < answers) std::this_thread::sleep_for(std::chrono::microseconds(200));
  };
  std::vector<double> trips, rates, widths;
  const std::string small = "c" + std::string(kSmall - 1, '.');
  Buffer large = Buffer::allocate(kLarge).value();
  std::memset(large.data(), 1, large.size());
  long answers = 0;
  for (int run = -1; run < runs; ++run) {  // the first warms up
    constexpr long kTrips = 5000;
    client.round_trips.clear();
    client.left = kTrips;
    client.sent_at = now_s();
    (void)transport->send(peer, Channel::actors, as_bytes(client.ping), {}, {}).ok();
    while (client.left > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<double> us(client.round_trips.begin(), client.round_trips.end());

    constexpr int kMessages = 1'000'000;
    double begin = now_s();
    for (int i = 0; i < kMessages; ++i)
      (void)transport->send(peer, Channel::actors, as_bytes(small), {}, {}).ok();
    await_answer(++answers);
    const double rate = kMessages / (now_s() - begin);

    constexpr int kBuffers = 30;
    begin = now_s();
    for (int i = 0; i < kBuffers; ++i)
      (void)transport->send(peer, Channel::actors, as_bytes("c"), {}, {large}).ok();
    await_answer(++answers);
    const double width = static_cast<double>(kLarge) * kBuffers / (now_s() - begin);
    if (run < 0) continue;
    trips.push_back(summarize(us).median);
    rates.push_back(rate);
    widths.push_back(width);
  }
  client.over = true;
  transport->stop();
  return {summarize(trips), summarize(rates), summarize(widths)};
}

Result3 measure_perftest(const std::string& tls, int runs) {
  std::vector<double> trips, rates, widths;
  for (int run = 0; run < runs; ++run) {
    const int port = 20'000 + static_cast<int>(::getpid() % 20'000) + run * 3;
    trips.push_back(2 * perftest(tls, "ucp_am_lat", kSmall, 20'000, 1, port));
    rates.push_back(perftest(tls, "ucp_am_bw", kSmall, 300'000, 7, port + 1));
    widths.push_back(perftest(tls, "ucp_am_bw", kLarge, 60, 5, port + 2) * (1 << 20));
  }
  return {summarize(trips), summarize(rates), summarize(widths)};
}

void print(const char* what, double scale, const Summary& ours, const Summary& raw) {
  fmt::print("  {:<22} {:>10.2f}  ({:.2f} to {:.2f})", what, ours.median * scale, ours.low * scale,
             ours.high * scale);
  if (raw.median != 0)
    fmt::print("   ucx_perftest {:>10.2f}   ratio {:.2f}", raw.median * scale,
               ours.median / raw.median);
  fmt::print("\n");
}

std::string json(const Summary& s) {
  return fmt::format(R"({{"median":{},"low":{},"high":{}}})", s.median, s.low, s.high);
}
std::string json(const Result3& r) {
  return fmt::format(R"({{"round_trip_us":{},"messages_per_s":{},"bytes_per_s":{}}})",
                     json(r.round_trip_us), json(r.messages_per_s), json(r.bytes_per_s));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--serve") == 0) return serve(argv[2]);
  bool as_json = false;
  int runs = 5;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) as_json = true;
    if (std::strcmp(argv[i], "--runs") == 0 && i + 1 < argc) runs = std::atoi(argv[++i]);
  }
  const bool raw = have_perftest();
  std::string out;
  for (const auto& [name, tls] : {std::pair{"tcp", "tcp"}, std::pair{"shared memory", ""}}) {
    const Result3 ours = measure(tls, runs);
    const Result3 theirs = raw ? measure_perftest(tls, runs) : Result3{};
    if (as_json) {
      out += fmt::format(R"({}"{}":{{"troupe":{},"ucx_perftest":{}}})", out.empty() ? "" : ",",
                         name, json(ours), raw ? json(theirs) : "null");
      continue;
    }
    fmt::print("{} (median of {} runs, least and most)\n", name, runs);
    print("round trip, us", 1, ours.round_trip_us, theirs.round_trip_us);
    print("64 B one way, M/s", 1e-6, ours.messages_per_s, theirs.messages_per_s);
    print("64 MiB, GB/s", 1e-9, ours.bytes_per_s, theirs.bytes_per_s);
  }
  if (as_json) fmt::print("{{{}}}\n", out);
}
