// What a change of members costs a cluster of 10, 100 and 1,000 nodes: real machines, a network on
// which every message takes the same time D.
#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/membership/codec.hpp"
#include "tests/runtime/membership/simulation.hpp"
#include "tests/support/scale.hpp"

namespace troupe::membership {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDelay = 1ms;  // D
constexpr Timing kTiming{100ms, 1s, 10s};

struct Cost {
  double noticed = 0;  ///< from the event to the head's decision, in D
  double told = 0;     ///< from there to the last member's new view, in D
  std::uint64_t head_messages = 0;
  std::uint64_t head_bytes = 0;
  std::uint64_t node_messages = 0;  ///< most of any other node
};

class Cluster {
public:
  explicit Cluster(std::size_t nodes) : sim_(1, options()) {
    head_ = sim_.start_cluster(nodes - 1);
    sim_.run_for(50ms);
  }

  Simulation& sim() { return sim_; }
  std::size_t size() const { return sim_.view(head_)->members.size(); }
  Simulation::Process last_node() const { return head_ - 1; }

  /// Does `what`, and waits until all have the view that comes of it.
  template <class What>
  Cost measure(What what) {
    std::vector<Simulation::Traffic> before;
    for (Simulation::Process p = 0; p < sim_.processes(); ++p) before.push_back(sim_.sent(p));
    const TimePoint begin = sim_.now();
    what();
    before.resize(sim_.processes());
    const auto generation = sim_.view(head_)->generation;
    while (sim_.view(head_)->generation == generation && sim_.now() < begin + 5s)
      sim_.run_for(kDelay);
    sim_.run_for(20 * kDelay);
    EXPECT_EQ(sim_.failure(), "");
    Cost cost;
    TimePoint last{};
    for (Simulation::Process p = 0; p < sim_.processes(); ++p) {
      if (!sim_.in(p)) continue;
      last = std::max(last, sim_.view_since(p));
      const auto messages = sim_.sent(p).messages - before[p].messages;
      if (p != head_) cost.node_messages = std::max(cost.node_messages, messages);
    }
    const auto in_delays = [](Duration d) { return std::chrono::duration<double>(d) / kDelay; };
    cost.noticed = in_delays(sim_.view_since(head_) - begin);
    cost.told = in_delays(last - sim_.view_since(head_));
    cost.head_messages = sim_.sent(head_).messages - before[head_].messages;
    cost.head_bytes = sim_.sent(head_).bytes - before[head_].bytes;
    return cost;
  }

private:
  static Simulation::Options options() {
    Simulation::Options options;
    options.timing = kTiming;
    options.delay = kDelay;
    options.encode_one_in = 1;
    return options;
  }

  Simulation sim_;
  Simulation::Process head_ = 0;
};

void print(std::size_t nodes, const char* event, const Cost& cost) {
  fmt::print("{:6}  {:13} {:10.0f} {:9.0f} {:14} {:12} {:14}\n", nodes, event, cost.noticed,
             cost.told, cost.head_messages, cost.head_bytes, cost.node_messages);
}

TEST(MembershipScale, a_change_takes_as_many_delays_among_a_thousand_nodes_as_among_ten) {
  fmt::print("{:>6}  {:13} {:>10} {:>9} {:>14} {:>12} {:>14}\n", "nodes", "event", "noticed/D",
             "told/D", "head messages", "head bytes", "node messages");
  for (const std::size_t nodes : scale_sizes()) {
    Cluster cluster(nodes);
    auto& sim = cluster.sim();
    ASSERT_EQ(sim.check_settled(), "");
    ASSERT_EQ(cluster.size(), nodes);
    const double log = std::log2(static_cast<double>(nodes));

    const auto dead = cluster.measure([&] { sim.kill(cluster.last_node()); });
    print(nodes, "a node dies", dead);
    EXPECT_EQ(dead.noticed, 1);  // the reset's own way
    EXPECT_LE(dead.told, log);
    EXPECT_LE(dead.head_messages, nodes);
    EXPECT_LE(dead.node_messages, 1u);  // a word to the head about the broken connection
    EXPECT_LE(dead.head_bytes, 512 * nodes);

    const auto victim = cluster.last_node() - 1;
    const auto silent = cluster.measure([&] { sim.pause(victim); });
    sim.kill(victim);
    print(nodes, "falls silent", silent);
    EXPECT_LE(silent.noticed, (kTiming.limit + 2 * kTiming.period) / kDelay);
    EXPECT_LE(silent.told, log);
    EXPECT_LE(silent.head_messages, nodes);
    EXPECT_LE(silent.node_messages, 1u);

    const auto joined = cluster.measure([&] { sim.start_node(); });
    print(nodes, "a node joins", joined);
    EXPECT_LE(joined.noticed + joined.told, 3 * log);
    EXPECT_LE(joined.head_messages, nodes + 1);
    EXPECT_LE(joined.node_messages, 2u);
    EXPECT_EQ(sim.check_settled(), "");
  }
}

TEST(MembershipScale, a_change_is_small_where_a_whole_view_is_not) {
  View view{7, {1, 1}, {}};
  for (std::uint32_t i = 0; i < 1000; ++i)
    view.members.push_back({{0x1234567812345678, i + 1},
                            fmt::format("node-{}", i),
                            {fmt::format("10.0.{}.{}", i / 250, i % 250), 40000},
                            {fmt::format("10.0.{}.{}", i / 250, i % 250), 40001},
                            fmt::format("a-host-of-some-name-{}", i),
                            1000 + i,
                            8,
                            i});
  const Departure departure{{1, 2}, "node-17", {Code::unavailable, "node-17 is gone: reset"}};
  const auto shared = std::make_shared<const View>(view);
  const auto begin = std::chrono::steady_clock::now();
  const auto whole = encode(ViewChanged{shared, {departure}});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const auto change = encode(Amended{
      std::make_shared<const Amendment>(Amendment{8, {view.members[0]}, {departure}, 1000})});
  fmt::print("a view of 1,000: {} bytes, encoded in {:.0f} us; a change of it: {} bytes\n",
             whole.size(), took.count() * 1e6, change.size());
  EXPECT_LT(change.size(), 1024u);
  EXPECT_GT(whole.size(), 100 * change.size());
}

}  // namespace
}  // namespace troupe::membership
