// What a message to an actor of another process costs, over TCP and over shared memory: a request
// and its response, small messages one way, a 64 MiB buffer. Beside each, in the same run: CAF's
// own TCP middleman between the same actors, and ucx_perftest (if it is on the PATH) on the same
// transport.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <caf/io/middleman.hpp>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/perftest.hpp"
#include "bench/remoting_actors.hpp"
#include "runtime/remoting/remoting.hpp"

namespace troupe::bench {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);
/// The middleman copies a message about four times and is slow: fewer suffice.
constexpr Load kMiddlemanLoad{.round_trips = 2000, .messages = 100'000, .buffers = 4};

[[noreturn]] void serve_until_killed(const std::string& place) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::printf("%s\n", place.c_str());
  std::fflush(stdout);
  for (;;) ::pause();
}

/// A troupe node with the transports `tls`.
struct Node {
  explicit Node(const std::string& tls) {
    transport::Options wire;
    wire.node = NodeId::random();
    wire.tls = tls;
    transport = transport::make_ucx_transport(wire).value();
    remoting::Options options;
    options.node = wire.node;
    options.configure = configure;
    remoting = make_remoting(std::move(options), *transport).value();
    if (!transport->start().ok()) std::exit(1);
    id = wire.node;
  }
  ~Node() {
    remoting->stop();
    transport->stop();
    remoting.reset();
  }
  NodeId id;
  std::unique_ptr<transport::Transport> transport;
  std::unique_ptr<remoting::Remoting> remoting;
};

void serve_troupe(const std::string& tls) {
  Node node(tls);
  if (!node.remoting->register_name("server", spawn_server(node.remoting->system())).ok()) return;
  const auto address = node.transport->listen({"127.0.0.1", 0}).value();
  serve_until_killed(fmt::format("{} {}", to_string(node.id), to_string(address)));
}

std::vector<Figures> measure_troupe(const std::string& tls, int runs) {
  Child child({"/proc/self/exe", "--serve-troupe", tls});
  const auto place = child.line();
  const auto gap = place.find(' ');
  const auto id = NodeId::parse(place.substr(0, gap)).value();
  const auto address = transport::Address::parse(place.substr(gap + 1)).value();
  Node node(tls);
  node.remoting->set_resolver([=](NodeId) { return std::optional(address); });
  const auto server = node.remoting->lookup(id, "server", kPatience).value();
  std::vector<Figures> figures;
  for (int run = -1; run < runs; ++run) {  // the first warms up
    figures.push_back(measure(node.remoting->system(), server, {}, true));
    if (run < 0) figures.clear();
  }
  return figures;
}

/// A system whose actors meet others over CAF's middleman.
struct MiddlemanConfig : caf::actor_system_config {
  MiddlemanConfig() {
    load<caf::io::middleman>();
    configure(*this);
  }
};

void serve_middleman() {
  MiddlemanConfig config;
  caf::actor_system system{config};
  const auto port = system.middleman().publish(spawn_server(system), 0, "127.0.0.1");
  if (port) serve_until_killed(std::to_string(*port));
}

std::vector<Figures> measure_middleman(int runs) {
  Child child({"/proc/self/exe", "--serve-middleman"});
  const auto port = static_cast<std::uint16_t>(std::atoi(child.line().c_str()));
  MiddlemanConfig config;
  caf::actor_system system{config};
  auto server = system.middleman().remote_actor("127.0.0.1", port);
  if (!server) return {};
  std::vector<Figures> figures;
  for (int run = -1; run < runs; ++run) {
    figures.push_back(measure(system, *server, kMiddlemanLoad, false));
    if (run < 0) figures.clear();
  }
  return figures;
}

std::vector<Figures> measure_perftest(const std::string& tls, int runs) {
  std::vector<Figures> figures;
  if (!have_perftest()) return figures;
  for (int run = 0; run < runs; ++run) {
    const int port = 20'000 + ::getpid() % 20'000 + run * 3;
    figures.push_back({2 * perftest(tls, "ucp_am_lat", kSmallBytes, 20'000, 1, port),
                       perftest(tls, "ucp_am_bw", kSmallBytes, 300'000, 7, port + 1),
                       perftest(tls, "ucp_am_bw", kLargeBytes, 60, 5, port + 2) * (1 << 20)});
  }
  return figures;
}

struct Summary {
  double median = 0, low = 0, high = 0;
};

Summary summarize(const std::vector<Figures>& figures, double Figures::*figure) {
  if (figures.empty()) return {};
  std::vector<double> values;
  for (const auto& f : figures) values.push_back(f.*figure);
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

struct Row {
  const char* what;
  const char* key;
  double Figures::*figure;
  double scale;
  bool less_is_better;
};
constexpr Row kRows[] = {
    {"round trip, us", "round_trip_us", &Figures::round_trip_us, 1, true},
    {"64 B one way, k/s", "messages_per_s", &Figures::messages_per_s, 1e-3, false},
    {"64 MiB, GB/s", "bytes_per_s", &Figures::bytes_per_s, 1e-9, false}};

struct Peer {
  const char* name;
  std::vector<Figures> figures;
};

void print_row(const Row& row, const std::vector<Peer>& peers) {
  const auto ours = summarize(peers[0].figures, row.figure);
  fmt::print("  {:<18}", row.what);
  for (const auto& peer : peers) {
    const auto s = summarize(peer.figures, row.figure);
    if (s.median == 0) continue;
    fmt::print("  {} {:.2f} ({:.2f} to {:.2f})", peer.name, s.median * row.scale, s.low * row.scale,
               s.high * row.scale);
    if (&peer != &peers[0])
      fmt::print(", {:.2f} times",
                 row.less_is_better ? s.median / ours.median : ours.median / s.median);
  }
  fmt::print("\n");
}

std::string json_of(const std::vector<Peer>& peers) {
  std::string text;
  for (const auto& peer : peers) {
    text += fmt::format("{}\"{}\":{{", text.empty() ? "" : ",", peer.name);
    for (const auto& row : kRows) {
      const auto s = summarize(peer.figures, row.figure);
      text += fmt::format(R"({}"{}":{{"median":{},"low":{},"high":{}}})", &row == kRows ? "" : ",",
                          row.key, s.median, s.low, s.high);
    }
    text += "}";
  }
  return "{" + text + "}";
}

int run(int argc, char** argv) {
  bool as_json = false;
  int runs = 5;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) as_json = true;
    if (std::strcmp(argv[i], "--runs") == 0 && i + 1 < argc) runs = std::atoi(argv[++i]);
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[++i];
  }
  const auto middleman = only == "troupe" ? std::vector<Figures>{} : measure_middleman(runs);
  std::string json;
  for (const auto& [name, tls, raw] : {std::tuple{"tcp", "tcp,self", "tcp,self"},
                                       std::tuple{"shared memory", "all", "shm,self"}}) {
    const std::vector<Peer> peers = {
        {"troupe", measure_troupe(tls, runs)},
        {"middleman", middleman},
        {"ucx_perftest", only == "troupe" ? std::vector<Figures>{} : measure_perftest(raw, runs)}};
    json += fmt::format("{}\"{}\":{}", json.empty() ? "" : ",", name, json_of(peers));
    if (as_json) continue;
    fmt::print("{} (median of {} runs, least to most; times: how many times better troupe is)\n",
               name, runs);
    for (const auto& row : kRows) print_row(row, peers);
    std::fflush(stdout);
  }
  if (as_json) fmt::print("{{{}}}\n", json);
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe::bench;
  if (argc == 3 && std::strcmp(argv[1], "--serve-troupe") == 0) return serve_troupe(argv[2]), 1;
  if (argc == 2 && std::strcmp(argv[1], "--serve-middleman") == 0) return serve_middleman(), 1;
  return run(argc, argv);
}
