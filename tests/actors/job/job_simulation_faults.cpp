// What goes wrong in a JobSimulation, and how a head takes over from another.
#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tests/actors/job/job_simulation.hpp"

namespace troupe::train {

void JobSimulation::plan_events() {
  for (std::size_t i = 0; i < options_.events; ++i) after(total() * 12'000, [this] { disturb(); });
  for (std::size_t i = 0; i < options_.heads; ++i) after(total() * 9'000, [this] { lose_head(); });
  if (options_.cancel_at)
    schedule(*options_.cancel_at * 1000, [this] {
      cancelled_ = true;
      if (headed()) machine_->cancel(now());
    });
  if (options_.kill_at_us) schedule(*options_.kill_at_us, [this] { kill(members_.back().node); });
  if (options_.join_at_us) schedule(*options_.join_at_us, [this] { join(); });
}

void JobSimulation::join() {
  const NodeId id = add_node();
  const JobNode node{id, fmt::format("node-{}", id.low)};
  if (!headed()) return joining_.push_back(node);
  members_.push_back(node);
  known_ = now_;
  machine_->joined(node, {}, now());
}

void JobSimulation::disturb() {
  std::vector<NodeId> living;
  for (const auto& member : members_)
    if (alive(member.node) && !(options_.spare_one && member.node == NodeId{0, 1}))
      living.push_back(member.node);
  if (living.empty() || random_() % 3 == 0) return join();
  const NodeId victim = living[random_() % living.size()];
  switch (random_() % 3) {
    case 0:
      return kill(victim);
    case 1:
      return cut(victim);
    default:
      return drain(victim);
  }
}

/// It is to leave, and goes when it has no work, or when it has waited for long enough.
void JobSimulation::drain(NodeId victim) {
  if (!headed()) return after(10'000, [=, this] { drain(victim); });
  const auto is_it = [victim](const JobNode& x) { return x.node == victim; };
  const auto at = std::find_if(members_.begin(), members_.end(), is_it);
  if (at == members_.end()) return;
  draining_.insert(victim);
  machine_->draining(victim, now());
  leave_when_idle(victim);
}

void JobSimulation::leave_when_idle(NodeId victim) {
  after(10'000, [=, this] {
    if (!alive(victim) || end_) return;
    if (!nodes_[victim].reducers.empty()) return leave_when_idle(victim);
    put_out(victim, "it left");
  });
}

void JobSimulation::kill(NodeId victim) {
  nodes_[victim].alive = false;
  after(30'000, [this, victim] { put_out(victim, "it was killed"); });
}

/// The head has decided. The node itself learns of it later.
void JobSimulation::put_out(NodeId victim, const char* why) {
  if (!headed()) return after(10'000, [=, this] { put_out(victim, why); });
  if (std::erase_if(members_, [victim](const auto& x) { return x.node == victim; }) == 0) return;
  after(50'000, [this, victim] { nodes_[victim].alive = false; });
  known_ = now_;
  machine_->departed(victim, {Code::unavailable, why}, now());
}

/// From the head, from another node, from all of them; in one direction or both; for a while, or so
/// long that it is put out.
void JobSimulation::cut(NodeId victim) {
  const auto kind = random_();
  const std::uint64_t until = now_ + random_() % 300'000;
  std::vector<NodeId> others;
  for (const auto& [id, node] : nodes_)
    if (id != victim && (kind % 2 == 0 || others.empty())) others.push_back(id);
  if (kind / 2 % 2 == 0) others.push_back(kHead);
  for (const NodeId other : others) {
    if (kind / 4 % 3 != 0) cut_until_[{other, victim}] = until;
    if (kind / 4 % 3 != 1) cut_until_[{victim, other}] = until;
  }
  queue_.emplace(std::pair{now_ + 100'000 + random_() % 30'000, ++sequence_}, [=, this] {
    if (until > now_ && alive(victim)) put_out(victim, "it is out of reach");
  });
}

void JobSimulation::lose_head() {
  if (end_) return;
  machine_.reset();
  ++head_;
  after(80'000, [this, head = head_] {
    if (head == head_) start_head();
  });
}

/// Asks the members that the store knows what they hold. Who does not answer in time is out.
void JobSimulation::start_head() {
  auto found = std::make_shared<std::map<NodeId, Node>>();
  for (const auto& member : members_) {
    const NodeId id = member.node;
    if (!alive(id)) continue;
    send(kHead, id, [=, this] {
      send(id, kHead, [=, node = nodes_[id]] { found->insert_or_assign(id, node); });
    });
  }
  queue_.emplace(std::pair{now_ + 6'000 + random_() % 10'000, ++sequence_},
                 [=, this, head = head_] {
                   if (head == head_) inherit(*found);
                 });
}

void JobSimulation::inherit(const std::map<NodeId, Node>& found) {
  Inherited inherited;
  inherited.term = head_;
  for (const auto& [id, node] : found)
    for (const auto& [generation, reducer] : node.reducers) {
      inherited.last_generation = std::max(inherited.last_generation, generation);
      if (reducer.begun) inherited.generation = std::max(inherited.generation, generation);
    }
  for (const auto& member : members_)
    if (!found.contains(member.node))
      after(50'000, [this, victim = member.node] { nodes_[victim].alive = false; });
  std::erase_if(members_, [&](const auto& x) { return !found.contains(x.node); });
  inherited.undisturbed = true;
  for (const auto& [id, node] : found) {
    const auto at = node.reducers.find(inherited.generation);
    if (at == node.reducers.end()) continue;
    const auto& reducer = at->second;
    inherited.nodes.resize(reducer.nodes.size());
    inherited.nodes[reducer.index] = {id, fmt::format("node-{}", id.low)};
    inherited.undisturbed &= reducer.running || reducer.finished;
  }
  for (const auto& node : inherited.nodes) inherited.undisturbed &= node.node.valid();
  if (inherited.undisturbed && inherited.generation != 0) ++undisturbed_;
  // The store is a little behind.
  next_step_ -= std::min<std::uint64_t>(next_step_, random_() % 3);
  next_epoch_ -= std::min<std::uint64_t>(next_epoch_, random_() % 2);
  inherited.steps_per_epoch = options_.steps_per_epoch;
  inherited.parameters = 1;
  inherited.steps = next_step_;
  inherited.epochs = next_epoch_;
  inherited.begun = begun_ > 0;
  for (const auto& member : members_)
    send(kHead, member.node, [=, this, id = member.node, head = head_] {
      std::erase_if(nodes_[id].reducers, [&](const auto& x) {
        return x.first != inherited.generation && x.first <= inherited.last_generation;
      });
      adopt(id, head, inherited);
    });
  for (const auto& node : std::exchange(joining_, {})) members_.push_back(node);
  machine_ = std::make_unique<JobMachine>(machine_options(options_), *this, *this);
  auto usable = members_;
  std::erase_if(usable, [this](const JobNode& x) { return draining_.contains(x.node); });
  machine_->inherit(inherited, usable, now());
  if (cancelled_) machine_->cancel(now());
}

/// A reducer tells its new head what that has missed. What an earlier head says comes too late.
void JobSimulation::adopt(NodeId id, std::uint64_t head, const Inherited& inherited) {
  auto& node = nodes_[id];
  const auto generation = inherited.generation;
  const auto at = node.reducers.find(generation);
  if (at == node.reducers.end() || head < at->second.head) return;
  auto& reducer = at->second;
  reducer.head = head;
  if (reducer.index == 0) {
    if (node.steps > inherited.steps)
      to_head(id, head, [=, this, last = node.steps - 1] { machine_->step({last, 0, 0, 0}); });
    for (const auto& epoch : node.epochs)
      if (epoch.epoch >= inherited.epochs) to_head(id, head, [=, this] { machine_->epoch(epoch); });
  }
  if (!reducer.finished) return;
  evaluate(id, generation);
  if (reducer.index == 0)
    to_head(id, head, [=, this] { machine_->last_step({generation, total()}); });
}

}  // namespace troupe::train
