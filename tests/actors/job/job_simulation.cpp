#include "tests/actors/job/job_simulation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::train {
namespace {

std::uint64_t mix(std::uint64_t state, std::uint64_t step) {
  state ^= step + 0x9E3779B97F4A7C15ull + (state << 6) + (state >> 2);
  return state * 0xC2B2AE3D27D4EB4Full;
}

/// What a test by these weights says: exact in a double, whatever the order of its sum.
double as_loss(std::uint64_t state) {
  return static_cast<double>(state % 1'000'003);
}

}  // namespace

JobMachine::Options JobSimulation::machine_options(const Options& options) {
  JobMachine::Options out;
  out.started.name = "simulated";
  out.started.ranks = options.ranks;
  out.started.epochs = options.epochs;
  out.min_nodes = options.min_nodes;
  out.wait = std::chrono::seconds(5);
  return out;
}

JobSimulation::JobSimulation(Options options)
    : options_(std::move(options)),
      random_(options_.seed),
      machine_(std::make_unique<JobMachine>(machine_options(options_), *this, *this)) {}

std::uint64_t JobSimulation::state_after(std::uint64_t steps) {
  std::uint64_t state = 0;
  for (std::uint64_t step = 0; step < steps; ++step) state = mix(state, step);
  return state;
}

void JobSimulation::broken(const std::string& what) {
  if (!broken_) broken_ = fmt::format("seed {}, at {} us: {}", options_.seed, now_, what);
}

void JobSimulation::after(std::uint64_t most_us, Task task) {
  schedule(now_ + (options_.delay_us ? *options_.delay_us : random_() % (most_us + 1)),
           std::move(task));
}

void JobSimulation::by_head(std::uint64_t most_us, Task task) {
  after(most_us, [this, head = head_, task = std::move(task)] {
    if (headed() && head == head_) task();
  });
}

void JobSimulation::send(NodeId from, NodeId to, Task task) {
  if (options_.delay_us)
    return schedule(now_ + *options_.delay_us, [this, from, to, task = std::move(task)] {
      if (alive(from) && alive(to)) task();
    });
  auto& last = last_arrival_[{from, to}];
  last = std::max({last + 1, now_ + 20 + random_() % 2000, cut_until_[{from, to}]});
  queue_.emplace(std::pair{last, ++sequence_}, [this, from, to, task = std::move(task)] {
    if (alive(from) && alive(to)) task();
  });
}

void JobSimulation::to_head(NodeId from, std::uint64_t head, Task task) {
  const bool twice = options_.duplicates && random_() % 8 == 0;
  for (int times = twice ? 2 : 1; times > 0; --times)
    send(from, kHead, [this, head, task] {
      if (headed() && head == head_) task();
    });
}

NodeId JobSimulation::add_node() {
  const NodeId id{0, next_node_++};
  nodes_.emplace(id, Node{});
  return id;
}

std::optional<std::string> JobSimulation::run() {
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    const NodeId id = add_node();
    members_.push_back({id, fmt::format("node-{}", id.low)});
  }
  machine_->start(members_, now());
  plan_events();
  std::uint64_t next_tick = 0, last_task = 0;
  for (std::size_t done = 0; !end_ && !broken_; ++done) {
    if (done > 2'000'000) broken("the job does not end");
    if (queue_.empty() || queue_.begin()->first.first > next_tick) {
      if (queue_.empty() && next_tick > last_task + 60'000'000) {
        broken("nothing happens any more, and the job is not over");
        break;
      }
      now_ = std::max(now_, next_tick);
      if (headed()) machine_->tick(TimePoint{} + std::chrono::microseconds(next_tick));
      next_tick += 250'000;
      continue;
    }
    auto item = queue_.extract(queue_.begin());
    last_task = now_ = item.key().first;
    item.mapped()();
  }
  return broken_;
}

// --- what the machine wants ----------------------------------------------------------------------

void JobSimulation::deploy(std::uint64_t generation, const std::vector<JobNode>& nodes) {
  placements_[generation] = nodes;
  timeline_.push_back({known_, now_});
  if (options_.delay_us) return deploy_in_rounds(generation);
  // One after the other; a head that dies meanwhile leaves some behind.
  for (std::size_t i = 0; i < nodes.size(); ++i)
    by_head(5000, [=, this] {
      if (alive(nodes[i].node)) deploy_on(nodes[i].node, generation, i);
    });
  queue_.emplace(std::pair{now_ + 5001, ++sequence_}, [=, this, head = head_] {
    if (!headed() || head != head_) return;
    for (const auto& node : nodes)
      if (!alive(node.node))
        return machine_->deployment_failed(generation, {Code::unavailable, "it is gone"}, now());
    for (std::size_t i = 0; i < nodes.size(); ++i) tell_ready(nodes[i].node, generation, i);
    machine_->deployed(generation, nodes.size(), now());
  });
}

/// Spawn all, connect all, start all: all are asked at once, and every answer is waited for. An
/// actor says that it is ready once it is spawned.
void JobSimulation::deploy_in_rounds(std::uint64_t generation) {
  const std::uint64_t delay = *options_.delay_us;
  schedule(now_ + delay, [=, this] {
    const auto& nodes = placements_.at(generation);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!alive(nodes[i].node)) continue;
      deploy_on(nodes[i].node, generation, i);
      tell_ready(nodes[i].node, generation, i);
    }
  });
  schedule(now_ + 6 * delay, [=, this] {
    timeline_.back().deployed = now_;
    machine_->deployed(generation, placements_.at(generation).size(), now());
  });
}

void JobSimulation::deploy_on(NodeId id, std::uint64_t generation, std::size_t index) {
  Reducer reducer;
  reducer.index = index;
  reducer.head = head_;
  for (const auto& node : placements_.at(generation)) reducer.nodes.push_back(node.node);
  nodes_[id].reducers[generation] = std::move(reducer);
}

void JobSimulation::tell_ready(NodeId id, std::uint64_t generation, std::size_t index) {
  const auto& node = nodes_[id];
  Ready ready;
  ready.generation = generation;
  ready.index = static_cast<std::uint32_t>(index);
  ready.actor = fmt::format("reducer {}", index);
  ready.steps_done = node.steps;
  ready.state_hash = fmt::format("{:x}", node.state);
  ready.steps_per_epoch = options_.steps_per_epoch;
  ready.parameters = 1;
  to_head(id, head_, [this, ready] { machine_->ready(ready, now()); });
  if (options_.planted != Planted::vote_counted_twice || index != 0) return;
  ready.actor += " again";
  to_head(id, head_, [this, ready] { machine_->ready(ready, now()); });
}

void JobSimulation::discard(std::uint64_t generation) {
  by_head(3000, [this, generation] {
    for (auto& [id, node] : nodes_) node.reducers.erase(generation);
  });
}

void JobSimulation::halt(std::uint64_t generation, std::size_t index) {
  const NodeId id = place_of(generation, index);
  if (!alive(id))
    return by_head(1000, [=, this] { machine_->unreachable(generation, index, now()); });
  send(kHead, id, [=, this, head = head_] {
    auto& node = nodes_[id];
    const auto at = node.reducers.find(generation);
    if (at == node.reducers.end() || !obeys(at->second, head))
      return to_head(id, head, [=, this] { machine_->unreachable(generation, index, now()); });
    at->second.running = false;
    to_head(id, head,
            [=, this, steps = node.steps] { machine_->halted(generation, index, steps, now()); });
  });
}

void JobSimulation::pull(std::uint64_t generation, std::size_t index, const StateSource& from) {
  const NodeId to = place_of(generation, index), source = place_of(from.generation, from.index);
  if (timeline_.back().pulls++ == 0) timeline_.back().ready = now_;
  if (!alive(to) || !alive(source))
    return by_head(1000, [=, this] {
      machine_->not_pulled(generation, index, {Code::unavailable, "it is gone"}, now());
    });
  watch_pull(generation, index, source);
  if (!options_.delay_us) return copy_state(generation, index, source, head_);
  // The head's word to it, and its own to the other.
  schedule(now_ + 2 * *options_.delay_us,
           [=, this, head = head_] { copy_state(generation, index, source, head); });
}

void JobSimulation::copy_state(std::uint64_t generation, std::size_t index, NodeId source,
                               std::uint64_t head) {
  const NodeId to = place_of(generation, index);
  send(source, to, [=, this] {
    auto& node = nodes_[to];
    const auto at = node.reducers.find(generation);
    if (at == node.reducers.end() || !obeys(at->second, head)) return;  // it has timed out
    for (const auto& [g, reducer] : node.reducers)
      if (reducer.running) broken("a state is copied over that of a running reducer");
    node.steps = nodes_[source].steps;
    node.epochs = nodes_[source].epochs;
    if (options_.planted != Planted::joiner_with_old_state) node.state = nodes_[source].state;
    to_head(to, head, [=, this, steps = node.steps, state = nodes_[source].state] {
      machine_->pulled(generation, index, {steps, fmt::format("{:x}", state)}, now());
    });
  });
}

/// Its request fails if the source is lost before it answers.
void JobSimulation::watch_pull(std::uint64_t generation, std::size_t index, NodeId source) {
  by_head(10'000, [=, this] {
    if (end_ || generation != placements_.rbegin()->first || now_ > 600'000'000) return;
    const bool there = std::any_of(members_.begin(), members_.end(),
                                   [=](const JobNode& x) { return x.node == source; });
    if (there && alive(source)) return watch_pull(generation, index, source);
    machine_->not_pulled(generation, index, {Code::unavailable, "its source is gone"}, now());
  });
}

void JobSimulation::begin(std::size_t index, const Begin& begin) {
  if (index == 0) {
    ++begun_;
    timeline_.back().pulled = now_;
    if (timeline_.back().pulls == 0) timeline_.back().ready = now_;
  }
  const NodeId id = place_of(begin.generation, index);
  send(kHead, id, [=, this, head = head_] {
    auto& node = nodes_[id];
    const auto at = node.reducers.find(begin.generation);
    // Another head may have ended it, or taken it over.
    if (at == node.reducers.end() || !obeys(at->second, head)) return;
    for (const auto& [g, other] : node.reducers)
      if (other.running) broken("two generations run on one node");
    if (node.steps != begin.step) broken("a reducer begins with another step than its state's");
    auto& reducer = at->second;
    reducer.begun = reducer.running = true;
    timeline_.back().begun = now_;
    reducer.step = begin.step;
    if (index == 0)
      for (const auto& epoch : node.epochs)
        if (epoch.epoch >= begin.epochs) to_head(id, head, [=, this] { machine_->epoch(epoch); });
    reducer.tested = begin.evaluate;
    if (begin.evaluate && begin.step == total()) evaluate(id, begin.generation);
    compute(id, begin.generation);
  });
}

void JobSimulation::save(std::uint64_t generation, std::size_t index, bool final_weights) {
  const NodeId id = place_of(generation, index);
  if (!alive(id))
    return by_head(1000, [=, this] {
      machine_->not_saved(generation, final_weights, {Code::unavailable, "it is gone"}, now());
    });
  send(kHead, id, [=, this, head = head_] {
    const auto& node = nodes_[id];
    if (final_weights && node.steps != total()) {
      to_head(id, head, [=, this] {
        machine_->not_saved(generation, true, {Code::failed_precondition, "not done yet"}, now());
      });
      return;
    }
    final_state_ = node.state;
    to_head(id, head, [=, this, steps = node.steps] {
      machine_->saved(generation, final_weights, {steps, "a file", "a hash", {}}, now());
    });
  });
  watch_save(id, generation, final_weights);
}

/// Its request fails if the node dies before it answers.
void JobSimulation::watch_save(NodeId id, std::uint64_t generation, bool final_weights) {
  by_head(10'000, [=, this] {
    if (end_) return;
    if (alive(id)) return watch_save(id, generation, final_weights);
    machine_->not_saved(generation, final_weights, {Code::unavailable, "it died"}, now());
  });
}

// --- what the reducers do ------------------------------------------------------------------------

void JobSimulation::compute(NodeId id, std::uint64_t generation) {
  auto& reducer = nodes_[id].reducers.at(generation);
  if (!reducer.running) return;
  if (reducer.step == total()) {
    reducer.running = false;
    reducer.finished = true;
    if (reducer.index == 0)
      to_head(id, reducer.head, [=, this] { machine_->last_step({generation, total()}); });
    return;
  }
  const auto step = reducer.step;
  const auto index = reducer.index;
  const auto peers = reducer.nodes;
  const auto ranks = ranks_of(reducer);
  after(5000, [=, this] {
    if (!alive(id)) return;
    if (options_.delay_us) return send_partials(id, generation, step);
    for (const NodeId peer : peers) {
      if (peer == id)
        take_partial(id, generation, step, index, ranks);
      else
        send(id, peer, [=, this] { take_partial(peer, generation, step, index, ranks); });
    }
  });
}

/// As one event: among a thousand nodes a step is a million of these.
void JobSimulation::send_partials(NodeId from, std::uint64_t generation, std::uint64_t step) {
  const auto give = [=, this](bool to_itself) {
    const auto reducer = nodes_[from].reducers.find(generation);
    if (!alive(from) || reducer == nodes_[from].reducers.end()) return;
    const auto index = reducer->second.index;
    const auto ranks = ranks_of(reducer->second);
    for (const NodeId peer : std::vector(reducer->second.nodes))
      if ((peer == from) == to_itself && alive(peer))
        take_partial(peer, generation, step, index, ranks);
  };
  give(true);
  after(0, [give] { give(false); });
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
  if (reducer.tested) {  // by the weights before this step
    const EpochFinished epoch{step / options_.steps_per_epoch - 1, as_loss(node.state), 0,
                              10 * options_.ranks};
    node.epochs.push_back(epoch);
    if (reducer.index == 0) to_head(id, reducer.head, [=, this] { machine_->epoch(epoch); });
  }
  node.state = mix(node.state, step);
  node.steps = step + 1;
  if (node.state != state_after(node.steps))
    broken(fmt::format("step {} has another result on node {}", step, id.low));
  if (reducer.index == 0) to_head(id, reducer.head, [=, this] { machine_->step({step, 0, 0, 0}); });
  reducer.tested = node.steps % options_.steps_per_epoch == 0;
  if (node.steps == total()) evaluate(id, generation);
  compute(id, generation);
}

/// The last epoch's test: no step follows that would bring it.
void JobSimulation::evaluate(NodeId id, std::uint64_t generation) {
  const auto& reducer = nodes_[id].reducers.at(generation);
  for (const auto rank : ranks_of(reducer))
    to_head(id, reducer.head, [=, this, loss = as_loss(nodes_[id].state)] {
      machine_->evaluated({generation, options_.epochs - 1, rank, 10, 9, loss * 10});
    });
}

// --- what an observer hears ----------------------------------------------------------------------

void JobSimulation::on_started(const JobStarted& x) {
  if (begun_ == 0) next_step_ = x.first_step;
}

void JobSimulation::on_step(const StepFinished& x) {
  // A reducer's report may be lost with its node: then the step is not told of.
  if (x.step < next_step_) broken(fmt::format("step {} is reported twice", x.step));
  next_step_ = x.step + 1;
}

void JobSimulation::on_epoch(const EpochFinished& x) {
  // One that a head has told may be lost with it, where the store is behind and the node that had
  // tested it is gone too.
  if (x.epoch < next_epoch_ || x.epoch > std::max(next_epoch_, told_epochs_))
    broken(fmt::format("epoch {} ends out of order", x.epoch));
  if (x.test_samples != 10 * options_.ranks) broken("an epoch's test lacks samples");
  if (x.test_loss != as_loss(state_after((x.epoch + 1) * options_.steps_per_epoch)))
    broken(fmt::format("epoch {} was tested with other weights than its own", x.epoch));
  next_epoch_ = x.epoch + 1;
  told_epochs_ = std::max(told_epochs_, next_epoch_);
}

}  // namespace troupe::train
