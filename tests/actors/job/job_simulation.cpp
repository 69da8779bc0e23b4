#include "tests/actors/job/job_simulation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::train {
namespace {

JobMachine::Options machine_options(const JobSimulation::Options& options) {
  JobMachine::Options out;
  out.started.name = "simulated";
  out.started.ranks = options.ranks;
  out.started.epochs = options.epochs;
  out.min_nodes = options.min_nodes;
  out.wait = std::chrono::seconds(5);
  return out;
}

std::uint64_t mix(std::uint64_t state, std::uint64_t step) {
  state ^= step + 0x9E3779B97F4A7C15ull + (state << 6) + (state >> 2);
  return state * 0xC2B2AE3D27D4EB4Full;
}

}  // namespace

JobSimulation::JobSimulation(Options options)
    : options_(std::move(options)),
      random_(options_.seed),
      machine_(machine_options(options_), *this, *this) {}

std::uint64_t JobSimulation::state_after(std::uint64_t steps) {
  std::uint64_t state = 0;
  for (std::uint64_t step = 0; step < steps; ++step) state = mix(state, step);
  return state;
}

void JobSimulation::broken(const std::string& what) {
  if (!broken_) broken_ = fmt::format("seed {}, at {} us: {}", options_.seed, now_, what);
}

void JobSimulation::after(std::uint64_t most_us, Task task) {
  queue_.emplace(std::pair{now_ + random_() % (most_us + 1), ++sequence_}, std::move(task));
}

void JobSimulation::send(NodeId from, NodeId to, Task task) {
  auto& last = last_arrival_[{from, to}];
  last = std::max(last + 1, now_ + 20 + random_() % 2000);
  queue_.emplace(std::pair{last, ++sequence_}, [this, from, to, task = std::move(task)] {
    if (alive(from) && alive(to)) task();
  });
}

void JobSimulation::add_node() {
  nodes_.emplace(NodeId{0, next_node_}, Node{});
  ++next_node_;
}

std::optional<std::string> JobSimulation::run() {
  std::vector<JobNode> members;
  for (std::size_t i = 0; i < options_.nodes; ++i) add_node();
  for (const auto& [id, node] : nodes_) members.push_back({id, fmt::format("node-{}", id.low)});
  machine_.start(members, now());
  for (std::size_t i = 0; i < options_.events; ++i) after(total() * 12'000, [this] { disturb(); });
  if (options_.cancel_at)
    queue_.emplace(std::pair{*options_.cancel_at * 1000, ++sequence_},
                   [this] { machine_.cancel(now()); });
  std::uint64_t next_tick = 0;
  for (std::size_t done = 0; !end_ && !broken_; ++done) {
    if (done > 2'000'000) broken("the job does not end");
    if (queue_.empty() || queue_.begin()->first.first > next_tick) {
      if (queue_.empty() && next_tick > now_ + 60'000'000) {
        broken("nothing happens any more, and the job is not over");
        break;
      }
      if (!queue_.empty() || next_tick > now_) now_ = std::max(now_, next_tick);
      machine_.tick(TimePoint{} + std::chrono::microseconds(next_tick));
      next_tick += 250'000;
      continue;
    }
    auto item = queue_.extract(queue_.begin());
    now_ = item.key().first;
    item.mapped()();
  }
  return broken_;
}

void JobSimulation::disturb() {
  std::vector<NodeId> living;
  for (const auto& [id, node] : nodes_)
    if (node.alive && !(options_.spare_one && id == NodeId{0, 1})) living.push_back(id);
  const bool join = living.empty() || random_() % 3 == 0;
  if (join) {
    const NodeId id{0, next_node_};
    add_node();
    machine_.joined({id, fmt::format("node-{}", id.low)}, now());
    return;
  }
  const NodeId victim = living[random_() % living.size()];
  nodes_[victim].alive = false;
  after(30'000, [this, victim] {
    machine_.departed(victim, {Code::unavailable, "it was killed"}, now());
  });
}

// --- what the machine wants ----------------------------------------------------------------------

void JobSimulation::deploy(std::uint64_t generation, const std::vector<JobNode>& nodes) {
  placements_[generation] = nodes;
  after(5000, [this, generation, nodes] {
    for (const auto& node : nodes)
      if (!alive(node.node))
        return machine_.deployment_failed(generation, {Code::unavailable, "it is gone"}, now());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Reducer reducer;
      reducer.index = i;
      for (const auto& node : nodes) reducer.nodes.push_back(node.node);
      auto& node = nodes_[nodes[i].node];
      node.reducers[generation] = std::move(reducer);
      Ready ready;
      ready.generation = generation;
      ready.index = static_cast<std::uint32_t>(i);
      ready.actor = fmt::format("reducer {}", i);
      ready.steps_done = node.steps;
      ready.state_hash = fmt::format("{:x}", node.state);
      ready.steps_per_epoch = options_.steps_per_epoch;
      ready.parameters = 1;
      const int times = options_.planted == Planted::vote_counted_twice && i == 0 ? 2 : 1;
      for (int n = 0; n < times; ++n)
        to_head(nodes[i].node, [this, ready] { machine_.ready(ready, now()); });
    }
    machine_.deployed(generation, nodes.size(), now());
  });
}

void JobSimulation::discard(std::uint64_t generation) {
  after(3000, [this, generation] {
    for (auto& [id, node] : nodes_) node.reducers.erase(generation);
  });
}

void JobSimulation::halt(std::uint64_t generation, std::size_t index) {
  const NodeId id = place_of(generation, index);
  if (!alive(id)) {
    after(1000, [=, this] { machine_.unreachable(generation, index, now()); });
    return;
  }
  send(kHead, id, [=, this] {
    auto& node = nodes_[id];
    node.reducers[generation].running = false;
    to_head(id,
            [=, this, steps = node.steps] { machine_.halted(generation, index, steps, now()); });
  });
}

void JobSimulation::pull(std::uint64_t generation, std::size_t index, std::size_t from) {
  const NodeId to = place_of(generation, index), source = place_of(generation, from);
  if (!alive(to) || !alive(source)) {
    after(1000, [=, this] {
      machine_.not_pulled(generation, index, {Code::unavailable, "it is gone"}, now());
    });
    return;
  }
  send(source, to, [=, this] {
    auto& node = nodes_[to];
    for (const auto& [g, reducer] : node.reducers)
      if (reducer.running) broken("a state is copied over that of a running reducer");
    node.steps = nodes_[source].steps;
    if (options_.planted != Planted::joiner_with_old_state) node.state = nodes_[source].state;
    to_head(to, [=, this, steps = node.steps, state = nodes_[source].state] {
      machine_.pulled(generation, index, {steps, fmt::format("{:x}", state)}, now());
    });
  });
}

void JobSimulation::begin(std::size_t index, const Begin& begin) {
  if (index == 0) ++begun_;
  const NodeId id = place_of(begin.generation, index);
  send(kHead, id, [=, this] {
    auto& node = nodes_[id];
    for (const auto& [g, other] : node.reducers)
      if (other.running) broken("two generations run on one node");
    auto& reducer = node.reducers.at(begin.generation);
    if (node.steps != begin.step) broken("a reducer begins with another step than its state's");
    reducer.running = true;
    reducer.step = begin.step;
    if (begin.evaluate) evaluate(id, begin.generation, begin.step / options_.steps_per_epoch - 1);
    compute(id, begin.generation);
  });
}

void JobSimulation::save(std::uint64_t generation, std::size_t index, bool final_weights) {
  const NodeId id = place_of(generation, index);
  if (!alive(id)) {
    after(1000, [=, this] {
      machine_.not_saved(generation, final_weights, {Code::unavailable, "it is gone"}, now());
    });
    return;
  }
  send(kHead, id, [=, this] {
    const auto& node = nodes_[id];
    if (final_weights && node.steps != total()) {
      to_head(id, [=, this] {
        machine_.not_saved(generation, true, {Code::failed_precondition, "not done yet"}, now());
      });
      return;
    }
    final_state_ = node.state;
    to_head(id, [=, this, steps = node.steps] {
      machine_.saved(generation, final_weights, {steps, "a file", "a hash"}, now());
    });
  });
  watch_save(id, generation, final_weights);
}

/// Its request fails if the node dies before it answers.
void JobSimulation::watch_save(NodeId id, std::uint64_t generation, bool final_weights) {
  after(10'000, [=, this] {
    if (end_) return;
    if (alive(id)) return watch_save(id, generation, final_weights);
    machine_.not_saved(generation, final_weights, {Code::unavailable, "it died"}, now());
  });
}

// --- what the reducers do ------------------------------------------------------------------------

void JobSimulation::compute(NodeId id, std::uint64_t generation) {
  auto& reducer = nodes_[id].reducers.at(generation);
  if (!reducer.running) return;
  if (reducer.step == total()) {
    reducer.running = false;
    if (reducer.index == 0) to_head(id, [=, this] { machine_.last_step({generation, total()}); });
    return;
  }
  const auto step = reducer.step;
  const auto index = reducer.index;
  const auto peers = reducer.nodes;
  const auto ranks = ranks_of(reducer);
  after(5000, [=, this] {
    if (!alive(id)) return;
    for (const NodeId peer : peers) {
      if (peer == id)
        take_partial(id, generation, step, index, ranks);
      else
        send(id, peer, [=, this] { take_partial(peer, generation, step, index, ranks); });
    }
  });
}

std::vector<std::uint32_t> JobSimulation::ranks_of(const Reducer& reducer) const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank)
    if (rank % reducer.nodes.size() == reducer.index) ranks.push_back(rank);
  return ranks;
}

void JobSimulation::take_partial(NodeId id, std::uint64_t generation, std::uint64_t step,
                                 std::size_t from, std::vector<std::uint32_t> ranks) {
  auto& node = nodes_[id];
  auto at = node.reducers.find(generation);
  if (options_.planted == Planted::stale_generation && !node.reducers.empty())
    at = std::prev(node.reducers.end());
  if (at == node.reducers.end()) return;
  at->second.partials[step].emplace(from, std::move(ranks));
  finish_step(id, at->first);
}

void JobSimulation::finish_step(NodeId id, std::uint64_t generation) {
  auto& node = nodes_[id];
  auto& reducer = node.reducers.at(generation);
  if (!reducer.running || reducer.partials[reducer.step].size() < reducer.nodes.size()) return;
  const auto step = reducer.step++;
  std::vector<bool> seen(options_.ranks);
  for (const auto& [from, ranks] : reducer.partials[step])
    for (const auto rank : ranks) {
      if (seen[rank]) broken(fmt::format("rank {} counts twice in step {}", rank, step));
      seen[rank] = true;
    }
  if (std::find(seen.begin(), seen.end(), false) != seen.end())
    broken(fmt::format("a rank is missing in step {}", step));
  reducer.partials.erase(step);
  node.state = mix(node.state, step);
  node.steps = step + 1;
  if (node.state != state_after(node.steps))
    broken(fmt::format("step {} has another result on node {}", step, id.low));
  if (reducer.index == 0) to_head(id, [=, this] { machine_.step({step, 0, 0}); });
  if (node.steps % options_.steps_per_epoch == 0)
    evaluate(id, generation, step / options_.steps_per_epoch);
  compute(id, generation);
}

void JobSimulation::evaluate(NodeId id, std::uint64_t generation, std::uint64_t epoch) {
  for (const auto rank : ranks_of(nodes_[id].reducers.at(generation)))
    to_head(id, [=, this] { machine_.evaluated({generation, epoch, rank, 10, 9, 1.0}); });
}

// --- what an observer hears ----------------------------------------------------------------------

void JobSimulation::on_started(const JobStarted& x) {
  next_step_ = x.first_step;
}

void JobSimulation::on_step(const StepFinished& x) {
  // A reducer's report may be lost with its node: then the step is not told of.
  if (x.step < next_step_) broken(fmt::format("step {} is reported twice", x.step));
  next_step_ = x.step + 1;
}

void JobSimulation::on_epoch(const EpochFinished& x) {
  if (x.epoch != next_epoch_) broken(fmt::format("epoch {} ends out of order", x.epoch));
  if (x.test_samples != 10 * options_.ranks) broken("an epoch's test lacks samples");
  ++next_epoch_;
}

}  // namespace troupe::train
