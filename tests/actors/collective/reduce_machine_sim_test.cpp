// Whole jobs in one thread, by seed: random ranks, nodes, placements, buckets and tuning; messages
// are delayed and reordered, repeated, and sent again from generations that are over; generations
// end in the middle. Every sum that comes out must have the bits of the naive tree sum.
//
// --seed=N replays one, --seeds=N runs that many.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "actors/collective/reduce_machine.hpp"
#include "tests/actors/collective/simulation.hpp"

namespace troupe::collective {
namespace {

struct InFlight {
  std::uint32_t to;
  AnyMessage message;
};

class Job {
public:
  explicit Job(std::uint64_t seed) : random_(seed) {
    ranks_ = pick(1, 13);
    const auto buckets = pick(0, 4);
    for (std::uint32_t b = 0; b < buckets; ++b) elements_.push_back(pick(1, 1u << pick(1, 13)));
    extras_ = elements_.empty() ? pick(1, 3) : pick(0, 2);
    draw_step_values();
    for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
      recorders_.push_back(std::make_unique<Recorder>());
      ReduceMachine::Options options;
      options.pool = pool_;
      options.delivery =
          random_() % 2 == 0 ? ReduceMachine::Delivery::buckets : ReduceMachine::Delivery::slices;
      delivery_.push_back(options.delivery);
      machines_.push_back(std::make_unique<ReduceMachine>(options, *recorders_.back()));
    }
  }

  void run() {
    const auto generations = pick(1, 4);
    for (std::uint32_t g = 0; g < generations; ++g) {
      const bool last = g + 1 == generations;
      begin_generation();
      run_generation(last ? SIZE_MAX : pick(0, 400));
      if (!last) end_generation();
      if (::testing::Test::HasFailure()) return;
    }
    for (std::uint32_t node = 0; node < plan_->nodes(); ++node)
      ASSERT_EQ(machines_[node]->step(), kSteps) << "node " << node << " did not finish";
  }

private:
  static constexpr std::uint64_t kSteps = 4;
  static constexpr std::uint32_t kMaxNodes = 6;

  std::uint32_t pick(std::uint32_t from, std::uint32_t to) {
    return from + static_cast<std::uint32_t>(random_() % (to - from + 1));
  }

  void draw_step_values() {
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      gradients_.emplace_back();
      for (const auto elements : elements_) {
        auto& by_rank = gradients_.back().emplace_back();
        for (std::uint32_t r = 0; r < ranks_; ++r)
          by_rank.push_back(draw_values(random_, elements));
      }
      auto& rows = extra_values_.emplace_back();
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        auto& row = rows.emplace_back();
        for (std::uint32_t k = 0; k < extras_; ++k)
          row.push_back(static_cast<double>(random_()) * 0x1p-70);
      }
    }
  }

  /// A new placement; all begin at the first step that one of them has not done.
  void begin_generation() {
    std::uint64_t step = kSteps;
    const std::uint32_t before = plan_ == nullptr ? 0 : plan_->nodes();
    for (std::uint32_t node = 0; node < before; ++node)
      if (started_[node]) step = std::min(step, machines_[node]->step());
    for (std::uint32_t node = 0; node < before; ++node)
      if (!started_[node]) step = std::min(step, first_step_);
    first_step_ = before == 0 ? 0 : step;

    ++generation_;
    PlanSpec spec;
    spec.nodes = pick(1, kMaxNodes);
    for (std::uint32_t r = 0; r < ranks_; ++r)
      spec.node_of_rank.push_back(random_() % 3 == 0 ? pick(0, spec.nodes - 1)
                                                     : r * spec.nodes / ranks_);
    spec.bucket_elements.assign(elements_.begin(), elements_.end());
    spec.extras = extras_;
    spec.tuning = {4096u << pick(0, 3), pick(0, 16384), pick(0, 16384), random_() % 2 == 0,
                   pick(1, kMaxNodes),  pick(0, 65536), pick(0, 8192)};
    plan_ = *ReducePlan::make(spec);
    given_.assign(spec.nodes, {});
    started_.assign(spec.nodes, false);
  }

  /// Some learn of it before what was under way arrives, others when they begin the next.
  void end_generation() {
    for (auto& machine : machines_)
      if (random_() % 2 == 0) machine->abort();
    for (auto* list : {&flight_, &repeats_}) {
      std::move(list->begin(), list->end(), std::back_inserter(old_));
      list->clear();
    }
    for (auto& recorder : recorders_) {
      recorder->buckets.clear();
      recorder->slices.clear();
    }
  }

  bool finished() const {
    for (std::uint32_t node = 0; node < plan_->nodes(); ++node)
      if (!started_[node] || machines_[node]->step() != kSteps) return false;
    return flight_.empty();
  }

  /// Whatever could happen next, in any order, for at most `events`.
  void run_generation(std::size_t events) {
    for (std::size_t i = 0; i < events && !finished() && !::testing::Test::HasFailure(); ++i) {
      ASSERT_LT(i, 2'000'000u) << "the job does not end";
      const auto kind = pick(0, 11);
      if (kind < 6 && !flight_.empty())
        deliver();
      else if (kind == 6 && !repeats_.empty())
        deliver_again();
      else if (kind == 7 && !old_.empty())
        deliver_stale();
      else if (kind == 8 && !flight_.empty())
        deliver_damaged();
      else
        local_event();
    }
  }

  /// True if the machine is in this generation, rather than before its start.
  bool takes_part(std::uint32_t node) const {
    return machines_[node]->active() && machines_[node]->generation() == generation_;
  }

  void deliver() {
    const auto at = pick(0, static_cast<std::uint32_t>(flight_.size() - 1));
    InFlight event = std::move(flight_[at]);
    if (at + 1 != flight_.size()) flight_[at] = std::move(flight_.back());
    flight_.pop_back();
    const Status status = receive(event);
    ASSERT_TRUE(status.ok()) << status.error().message;
    if (random_() % 8 == 0) repeats_.push_back(std::move(event));
  }

  void deliver_again() {
    const InFlight event = std::move(repeats_.back());
    repeats_.pop_back();
    const bool now = takes_part(event.to);
    const Status status = receive(event);
    ASSERT_TRUE(!now || !status.ok()) << "a message was taken twice";
  }

  void deliver_stale() {
    InFlight event = std::move(old_.back());
    old_.pop_back();
    event.to = pick(0, kMaxNodes - 1);
    // One that has not heard of the new generation would rightly take it.
    const bool now = takes_part(event.to);
    if (!now && machines_[event.to]->active()) return;
    const Status status = receive(event);
    ASSERT_TRUE(!now || status.code() == Code::stale_generation);
  }

  void deliver_damaged() {
    InFlight event = flight_[pick(0, static_cast<std::uint32_t>(flight_.size() - 1))];
    if (!takes_part(event.to)) return;
    const auto how = pick(0, 4);
    std::visit(
        [&](auto& m) {
          if (how == 0) m.plan += 1;
          if (how == 1) m.from = event.to;
          if (how == 2) m.step += 2 + random_() % 5;
          if (how == 3) m.from = plan_->nodes();
          if (how == 4) shorten(m);
        },
        event.message);
    ASSERT_FALSE(receive(event).ok()) << "damage " << how;
  }
  static void shorten(Partial& m) { m.parts[0] = m.parts[0].slice(0, m.parts[0].size() - 4); }
  static void shorten(SliceSum& m) { m.sum = m.sum.slice(0, m.sum.size() - 4); }
  static void shorten(Extras& m) { m.values.push_back(1); }

  Status receive(const InFlight& event) {
    ReduceMachine& machine = *machines_[event.to];
    auto message = event.message;
    const Status status =
        std::visit([&](auto& m) { return machine.receive(std::move(m)); }, message);
    collect(event.to);
    return status;
  }

  /// A node that has not begun begins; one that has gives something that it has not given.
  void local_event() {
    const auto node = pick(0, plan_->nodes() - 1);
    ReduceMachine& machine = *machines_[node];
    if (!started_[node]) {
      started_[node] = true;
      ASSERT_TRUE(machine.start(plan_, node, generation_, first_step_).ok());
      collect(node);
      return;
    }
    const auto step = machine.step();
    const auto ranks = plan_->ranks_of(node);
    if (step == kSteps || ranks.empty()) return;
    const auto rank = ranks[random_() % ranks.size()];
    const auto what = pick(0, static_cast<std::uint32_t>(elements_.size()));
    if (!given_[node].insert({step, rank, what}).second) return;
    if (what == elements_.size()) {
      ASSERT_TRUE(machine.add_extras(generation_, step, rank, extra_values_[step][rank]).ok());
    } else {
      const auto status = machine.add_gradient(generation_, step, rank, what,
                                               to_buffer(gradients_[step][what][rank]));
      ASSERT_TRUE(status.ok()) << status.error().message;
    }
    collect(node);
  }

  void collect(std::uint32_t node) {
    Recorder& recorder = *recorders_[node];
    for (auto& sent : recorder.sent) flight_.push_back({sent.to, std::move(sent.message)});
    recorder.sent.clear();
    for (const auto& done : recorder.steps) check_step(node, done);
    recorder.steps.clear();
  }

  void check_step(std::uint32_t node, const Recorder::Done& done) {
    Recorder& recorder = *recorders_[node];
    for (std::uint32_t b = 0; b < elements_.size(); ++b) {
      const auto expected = naive_sum({0, ranks_}, gradients_[done.step][b]);
      auto& whole = recorder.buckets.at({done.step, b});
      std::vector<float> got = to_floats(whole);
      if (delivery_[node] == ReduceMachine::Delivery::slices)
        for (auto s = plan_->first_slice(b); s < plan_->end_slice(b); ++s) {
          const auto part = to_floats(recorder.slices.at({done.step, s}));
          got.insert(got.end(), part.begin(), part.end());
        }
      ASSERT_EQ(got.size(), expected.size());
      ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
          << "node " << node << " step " << done.step << " bucket " << b;
    }
    ASSERT_EQ(done.extras, naive_extras({0, ranks_}, extra_values_[done.step]));
    const auto of_step = [&](const auto& entry) { return entry.first.first == done.step; };
    std::erase_if(recorder.buckets, of_step);
    std::erase_if(recorder.slices, of_step);
  }

  std::vector<double> naive_extras(RankRange range, const std::vector<std::vector<double>>& rows) {
    if (range.size() == 1) return rows[range.begin];
    const auto mid = Tree::split(range);
    auto left = naive_extras({range.begin, mid}, rows);
    const auto right = naive_extras({mid, range.end}, rows);
    for (std::size_t k = 0; k < left.size(); ++k) left[k] += right[k];
    return left;
  }

  std::mt19937_64 random_;
  std::uint32_t ranks_ = 1;
  std::vector<std::uint32_t> elements_;
  std::uint32_t extras_ = 0;
  std::vector<std::vector<std::vector<std::vector<float>>>> gradients_;  // step, bucket, rank
  std::vector<std::vector<std::vector<double>>> extra_values_;           // step, rank

  std::uint64_t generation_ = 0;
  std::uint64_t first_step_ = 0;
  std::shared_ptr<const ReducePlan> plan_;
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::vector<std::unique_ptr<ReduceMachine>> machines_;
  std::vector<ReduceMachine::Delivery> delivery_;
  std::vector<bool> started_;
  std::vector<std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>>> given_;
  std::vector<InFlight> flight_;
  std::vector<InFlight> repeats_;  // taken once already
  std::vector<InFlight> old_;      // of generations that are over
};

std::uint64_t g_first_seed = 1;
std::uint64_t g_seeds = 1000;

TEST(ReductionSimTest, EverySumHasTheBitsOfTheTreeWhateverHappens) {
  for (std::uint64_t seed = g_first_seed; seed < g_first_seed + g_seeds; ++seed) {
    SCOPED_TRACE(fmt::format("replay with --seed={}", seed));
    Job(seed).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe::collective

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg.starts_with("--seed=")) {
      troupe::collective::g_first_seed = std::strtoull(argv[i] + 7, nullptr, 10);
      troupe::collective::g_seeds = 1;
    } else if (arg.starts_with("--seeds=")) {
      troupe::collective::g_seeds = std::strtoull(argv[i] + 8, nullptr, 10);
    }
  }
  return RUN_ALL_TESTS();
}
