// Whole clusters in one thread, by seed: nodes come, leave, die, are paused and cut off,
// connections break, strangers talk; the head too. What must always hold is checked after every
// event, and some time after the last fault every live node is in the newest view or knows that it
// is out.
//
// --seed=N replays one, --seeds=N runs that many.
#include <chrono>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/runtime/membership/simulation.hpp"

namespace troupe::membership {
namespace {

using namespace std::chrono_literals;

std::uint64_t g_first_seed = 1;
std::uint64_t g_seeds = 4000;

/// One random schedule of faults over a cluster.
class Schedule {
public:
  explicit Schedule(std::uint64_t seed)
      : random_(~seed), store_(pick(0, 1) == 0), sim_(seed, options()) {}

  std::string run() {
    sim_.start_head();
    const auto nodes = pick(1, 6);
    for (std::uint64_t i = 0; i < nodes; ++i) sim_.at(ms(0, 300), [this] { start(); });
    const auto faults = pick(0, 7);
    for (std::uint64_t i = 0; i < faults; ++i) sim_.at(ms(0, 2000), [this] { fault(); });
    sim_.run_for(2s);
    for (std::size_t p = 0; p < sim_.processes(); ++p) sim_.resume(p);
    sim_.heal_all();
    // The store's lease runs out before another leads, and one always comes back.
    if (store_ && sim_.leader() == nullptr) sim_.start_head();
    sim_.run_for(3500ms);
    if (faults == 0 && sim_.in_count() != nodes + 1) return "not all got in, and nothing was wrong";
    return sim_.check_settled();
  }
  std::uint64_t events() const { return sim_.events(); }
  std::size_t in() const { return sim_.in_count(); }
  std::size_t processes() const { return sim_.processes(); }

private:
  std::uint64_t pick(std::uint64_t from, std::uint64_t to) {
    return from + random_() % (to - from + 1);
  }
  Duration ms(std::uint64_t from, std::uint64_t to) {
    return std::chrono::milliseconds(pick(from, to));
  }
  std::size_t any() { return pick(0, sim_.processes() - 1); }
  /// The head is spared mostly, or there is not much to see.
  std::size_t victim() {
    const auto p = any();
    return p == 0 && pick(0, 3) != 0 ? sim_.processes() - 1 : p;
  }

  Simulation::Options options() const {
    Simulation::Options options;
    if (store_) options.timing.headless = 2500ms;
    return options;
  }

  /// The head dies, or is only stopped or cut off, and another takes over.
  void succeed() {
    if (!store_ || sim_.leader() == nullptr) return;
    const auto head = *sim_.leader();
    switch (pick(0, 3)) {
      case 0:
        pause(head);
        break;
      case 1:
        cut_off(head);
        break;
      default:
        sim_.kill(head);
    }
    sim_.at(ms(1, 900), [this] { sim_.start_head(); });
  }

  void start() { sim_.start_node(pick(0, 1) == 0 ? "node" : ""); }

  void fault() {
    switch (pick(0, 11)) {
      case 0:
        return sim_.kill(victim());
      case 1:
        return pause(victim());
      case 2:
        return cut(any(), any());
      case 3:
        return cut_off(victim());
      case 4:
        return sim_.reset_connection(any(), any());
      case 5:
        return sim_.leave(victim());
      case 6:
        return start();
      case 7:
        return sim_.inject(any(), any(), std::nullopt);
      case 8:
        return sim_.inject(any(), any(), odd_message());
      case 9:
        return succeed();
      case 10:
        return cut_one_way(victim(), any());
      case 11:
        return sim_.drain(any(), any());
    }
  }
  void pause(std::size_t p) {
    sim_.pause(p);
    sim_.at(ms(10, 1500), [this, p] { sim_.resume(p); });
  }
  void cut(std::size_t a, std::size_t b) {
    sim_.cut(a, b);
    sim_.at(ms(10, 1500), [this, a, b] { sim_.heal(a, b); });
  }
  void cut_one_way(std::size_t from, std::size_t to) {
    if (from == to) return;
    sim_.cut_one_way(from, to);
    sim_.at(ms(10, 1500), [this, from, to] { sim_.heal(from, to); });
  }
  void cut_off(std::size_t p) {
    for (std::size_t q = 0; q < sim_.processes(); ++q)
      if (q != p) cut(p, q);
  }
  Message odd_message() {
    switch (pick(0, 6)) {
      case 0:
        return Mesh{};
      case 1:
        return Suspect{sim_.id(any()), {Code::unavailable, "says so"}};
      case 2:
        return Heartbeat{pick(0, 9), 0};
      case 3:
        return Released{};
      case 4:
        return Join{static_cast<std::uint32_t>(pick(0, 2)), {}};
      case 5:
        return Amended{std::make_shared<const Amendment>(Amendment{pick(1, 30), {}, {}, 0})};
      default:
        return ViewChanged{std::make_shared<const View>(View{99, sim_.id(0), {}}), {}};
    }
  }

  std::mt19937_64 random_;
  const bool store_;  ///< a head may be followed by another
  Simulation sim_;
};

TEST(MembershipSimulation, ends_with_every_live_node_in_the_newest_view_or_out) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t events = 0;
  std::size_t in = 0;
  std::size_t processes = 0;
  for (std::uint64_t seed = g_first_seed; seed < g_first_seed + g_seeds; ++seed) {
    Schedule schedule(seed);
    const auto broken = schedule.run();
    events += schedule.events();
    in += schedule.in();
    processes += schedule.processes();
    ASSERT_EQ(broken, "") << "replay with --seed=" << seed;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{} schedules, {} events, {} of {} processes in at the end, {:.0f} schedules/s\n",
             g_seeds, events, in, processes, static_cast<double>(g_seeds) / took.count());
}

TEST(MembershipSimulation, a_thousand_joins_and_departures_leave_the_right_view) {
  std::mt19937_64 random(g_first_seed);
  Simulation sim(g_first_seed, {});
  sim.start_head();
  std::vector<std::size_t> there;
  std::size_t joins = 0;
  while (joins < 1000) {
    if (there.size() < 4 || (there.size() < 24 && random() % 2 == 0)) {
      there.push_back(sim.start_node());
      ++joins;
    } else {
      const auto at = random() % there.size();
      const auto p = there[at];
      there.erase(there.begin() + static_cast<std::ptrdiff_t>(at));
      if (random() % 2 == 0)
        sim.leave(p);
      else
        sim.kill(p);
    }
    sim.run_for(std::chrono::milliseconds(random() % 60));
    ASSERT_EQ(sim.failure(), "");
  }
  sim.run_for(5s);
  ASSERT_EQ(sim.check_settled(), "") << "seed " << g_first_seed;
  EXPECT_EQ(sim.view(0)->members.size(), there.size() + 1);
}

TEST(MembershipSimulation, two_hundred_nodes_that_start_together_get_in) {
  Simulation::Options options;
  options.join_timeout = 60s;
  options.encode_one_in = 0;
  Simulation sim(g_first_seed, options);
  sim.start_head();
  for (int i = 0; i < 200; ++i) sim.start_node();
  sim.run_for(20s);
  ASSERT_EQ(sim.check_settled(), "");
  EXPECT_EQ(sim.view(0)->members.size(), 201u);
}

}  // namespace
}  // namespace troupe::membership

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg.starts_with("--seed=")) {
      troupe::membership::g_first_seed = std::strtoull(argv[i] + 7, nullptr, 10);
      troupe::membership::g_seeds = 1;
    } else if (arg.starts_with("--seeds=")) {
      troupe::membership::g_seeds = std::strtoull(argv[i] + 8, nullptr, 10);
    }
  }
  return RUN_ALL_TESTS();
}
