// How a JobMachine goes from one set of nodes to the next.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/job/job_machine.hpp"

namespace troupe::train {

std::vector<JobNode> JobMachine::choose() const {
  const std::size_t limit =
      options_.max_nodes > 0 ? std::min(options_.max_nodes, started_.ranks) : started_.ranks;
  auto nodes = members_;
  if (nodes.size() > limit) nodes.resize(limit);
  return nodes;
}

bool JobMachine::all_lost() const {
  const auto& holders = current_.holders;
  return std::all_of(holders.begin(), holders.end(), [](const Holder& x) { return x.lost; });
}

void JobMachine::change(std::string reason, TimePoint now) {
  change_reason_ = std::move(reason);
  changed_at_ = now;
  phase_ = Phase::halting;
  halt_all(now);
}

void JobMachine::halt_all(TimePoint now) {
  for (std::size_t i = 0; i < current_.holders.size(); ++i) {
    auto& holder = current_.holders[i];
    if (holder.lost) continue;
    holder.halting = true;
    effects_.halt(current_.number, i);
  }
  after_halt(now);
}

void JobMachine::halted(std::uint64_t generation, std::size_t index, std::uint64_t steps_done,
                        TimePoint now) {
  auto* const holder = take_halting(generation, index);
  if (holder == nullptr) return;
  holder->steps_done = steps_done;
  after_halt(now);
}

void JobMachine::unreachable(std::uint64_t generation, std::size_t index, TimePoint now) {
  auto* const holder = take_halting(generation, index);
  if (holder == nullptr) return;
  holder->lost = true;
  after_halt(now);
}

/// Who was halting and has answered, in one way or the other; null for an answer to nothing.
JobMachine::Holder* JobMachine::take_halting(std::uint64_t generation, std::size_t index) {
  if (generation != current_.number || index >= current_.holders.size()) return nullptr;
  auto& holder = current_.holders[index];
  return std::exchange(holder.halting, false) ? &holder : nullptr;
}

void JobMachine::after_halt(TimePoint now) {
  const auto& holders = current_.holders;
  if (std::any_of(holders.begin(), holders.end(), [](const Holder& x) { return x.halting; }))
    return;
  if (phase_ == Phase::halting) return place(now);
  if (phase_ == Phase::ending && !saving_) save_next(false);
}

void JobMachine::place(TimePoint now) {
  deadline_.reset();
  if (next_.number != current_.number) effects_.discard(next_.number);
  next_ = current_;
  if (has_begun_ && all_lost())
    return end_with({Code::unavailable,
                     fmt::format("{}; no node that has the job's weights is left", change_reason_)},
                    now);
  auto nodes = choose();
  if (nodes.size() < std::max<std::size_t>(1, options_.min_nodes)) {
    phase_ = Phase::waiting;
    deadline_ = now + options_.wait;
    observer_.on_notice({fmt::format("{}{} of at least {} nodes are there: waiting for more",
                                     change_reason_.empty() ? "" : change_reason_ + "; ",
                                     nodes.size(), options_.min_nodes)});
    save_while_waiting();
    return;
  }
  phase_ = Phase::preparing;
  placed_at_ = ready_at_ = now;
  if (!has_begun_) data_ = weights_ = program_ = instructions_ = {};
  next_ = {++generation_, std::move(nodes), {}};
  next_.holders.resize(next_.nodes.size());
  actors_.reset();
  ready_.clear();
  effects_.deploy(generation_, next_.nodes);
}

void JobMachine::deployed(std::uint64_t generation, std::size_t actors, TimePoint now) {
  if (generation != generation_ || phase_ != Phase::preparing) return;
  actors_ = actors;
  check_ready(now);
}

void JobMachine::deployment_failed(std::uint64_t generation, const Error& reason, TimePoint now) {
  if (generation == generation_ && phase_ == Phase::preparing) retry_or_end(reason, now);
}

/// The cluster says soon if a node was lost; if it does not, another try does no harm.
void JobMachine::retry_or_end(Error reason, TimePoint now) {
  if (reason.code == Code::unavailable)
    deadline_ = now + kRetryAfter;
  else
    end_with(std::move(reason), now);
}

void JobMachine::ready(const Ready& x, TimePoint now) {
  if (x.generation != generation_ || phase_ != Phase::preparing) return;
  if (x.code != 0)
    return end_with(
        {static_cast<Code>(x.code), fmt::format("{}, {}: {}", place_of(x), x.actor, x.message)},
        now);
  if (auto status =
          compare({x.data_hash, x.weights_hash, x.program, x.instruction_set}, place_of(x));
      !status.ok())
    return end_with(status.error(), now);
  if (x.parameters > 0) {
    if (x.index >= next_.holders.size()) return;
    started_.steps_per_epoch = x.steps_per_epoch;
    started_.parameters = x.parameters;
    auto& holder = next_.holders[x.index];
    holder.steps_done = x.steps_done;
    holder.state_hash = x.state_hash;
  }
  ready_.insert(x.actor);
  check_ready(now);
}

/// What must be the same on all nodes, and on those that join later.
Status JobMachine::compare(const Traits& traits, const std::string& place) {
  const auto differs = [&](std::pair<std::string, std::string>& first, const std::string& value) {
    if (first.first.empty()) first = {value, place};
    return !value.empty() && value != first.first;
  };
  if (differs(data_, traits.data))
    return Error{Code::invalid_argument,
                 fmt::format("{} and {} read different data ({} and {}); give every node the same "
                             "files",
                             data_.second, place, data_.first, traits.data)};
  if (differs(weights_, traits.weights))
    return Error{Code::invalid_argument,
                 fmt::format("{} and {} start from different weights ({} and {}); give every node "
                             "the same file under the name in model.weights",
                             weights_.second, place, weights_.first, traits.weights)};
  if (differs(program_, traits.program))
    return Error{
        Code::invalid_argument,
        fmt::format("{} and {} run different programs ({} and {}), which may compute other "
                    "last bits; give every node the same build",
                    program_.second, place, program_.first, traits.program)};
  if (differs(instructions_, traits.instruction_set))
    return Error{
        Code::invalid_argument,
        fmt::format(
            "{} computes with instruction set {} and {} with {}, which give other "
            "last bits; set job.max_cpu_isa to the newest that both have (\"avx2\" or "
            "\"avx512_core\" for most), leave ONEDNN_MAX_CPU_ISA unset, and start the nodes "
            "again",
            instructions_.second, instructions_.first, place, traits.instruction_set)};
  return {};
}

/// The node of an actor that is being prepared.
std::string JobMachine::place_of(const Ready& x) const {
  if (x.node >= next_.nodes.size()) return x.actor;
  return text(next_.nodes[x.node]);
}

/// All are there: who is behind takes the state of the most advanced.
void JobMachine::check_ready(TimePoint now) {
  if (phase_ != Phase::preparing || !actors_ || ready_.size() < *actors_) return;
  auto& holders = next_.holders;
  if (std::any_of(holders.begin(), holders.end(), [](const Holder& x) { return x.pulling; }))
    return;
  if (ready_at_ == placed_at_) ready_at_ = now;
  const auto [source, best] = most_advanced();
  bool pulling = false;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].steps_done != best.steps_done) {
      pulling = holders[i].pulling = true;
      effects_.pull(generation_, i, source);
    } else if (source.generation == generation_ && holders[i].state_hash != best.state_hash) {
      return end_with(
          {Code::invalid_argument,
           fmt::format("nodes '{}' and '{}' have different weights after step {} ({} and {}); give "
                       "every node the same files and the same release",
                       next_.nodes[source.index].name, next_.nodes[i].name, holders[i].steps_done,
                       best.state_hash, holders[i].state_hash)},
          now);
    }
  }
  if (!pulling) begin(now);
}

/// Of the generation that is being prepared, unless a node that is no more in it has got farther.
std::pair<StateSource, JobMachine::Holder> JobMachine::most_advanced() const {
  std::pair<StateSource, Holder> best{{generation_, 0}, next_.holders.front()};
  const auto look = [&](const Generation& g) {
    for (std::size_t i = 0; i < g.holders.size(); ++i)
      if (!g.holders[i].lost && g.holders[i].steps_done > best.second.steps_done)
        best = {{g.number, i}, g.holders[i]};
  };
  look(next_);
  look(current_);
  return best;
}

/// The nodes that are left, or are to leave, may not be there any more when others come.
void JobMachine::save_while_waiting() {
  const auto& holders = current_.holders;
  const auto best =
      std::max_element(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
        return std::pair(!a.lost, a.steps_done) < std::pair(!b.lost, b.steps_done);
      });
  if (best != holders.end() && !best->lost)
    effects_.save(current_.number, static_cast<std::size_t>(best - holders.begin()), false);
}

void JobMachine::pulled(std::uint64_t generation, std::size_t index, const Pulled& state,
                        TimePoint now) {
  if (generation != generation_ || phase_ != Phase::preparing || index >= next_.holders.size())
    return;
  auto& holders = next_.holders;
  if (!std::exchange(holders[index].pulling, false)) return;
  holders[index].steps_done = state.steps_done;
  holders[index].state_hash = state.state_hash;
  check_ready(now);
}

void JobMachine::not_pulled(std::uint64_t generation, std::size_t index, const Error& reason,
                            TimePoint now) {
  if (generation != generation_ || phase_ != Phase::preparing) return;
  retry_or_end({reason.code, fmt::format("node '{}' could not take the weights of another: {}",
                                         next_.nodes.at(index).name, reason.message)},
               now);
}

void JobMachine::begin(TimePoint now) {
  deadline_.reset();
  const auto previous = std::exchange(current_, next_);
  steps_done_ = current_.holders.front().steps_done;
  phase_ = Phase::running;
  saving_ = false;
  stragglers_.begin(current_.nodes.size());
  if (!std::exchange(has_begun_, true)) {
    if (auto status = effects_.starting(); !status.ok()) {
      has_begun_ = false;
      return end_with(status.error(), now);
    }
    started_.first_step = steps_done_;
    started_.nodes = static_cast<std::uint32_t>(current_.nodes.size());
    epochs_evaluated_ = epochs_done();
    reported_ = steps_done_;
    observer_.on_started(started_);
  } else {
    const auto seconds = [](Duration d) { return std::chrono::duration<double>(d).count(); };
    observer_.on_generation({current_.number, steps_done_,
                             static_cast<std::uint32_t>(current_.nodes.size()), change_reason_,
                             seconds(placed_at_ - changed_at_), seconds(ready_at_ - placed_at_),
                             seconds(now - ready_at_)});
    observer_.on_notice(
        {fmt::format("{}; the job goes on after step {} on {} node{}", change_reason_, steps_done_,
                     current_.nodes.size(), current_.nodes.size() == 1 ? "" : "s")});
  }
  // An epoch whose test was cut short is tested again: the same samples by the same weights.
  // Once a step has gone past it, its result is part of the state.
  const bool boundary = steps_done_ % started_.steps_per_epoch == 0;
  const Begin begin{current_.number, steps_done_, boundary && epochs_done() > epochs_evaluated_,
                    epochs_evaluated_};
  for (std::size_t i = 0; i < current_.nodes.size(); ++i) effects_.begin(i, begin);
  if (previous.number != 0) effects_.discard(previous.number);
  if (choose() != current_.nodes) change("nodes came or went meanwhile", now);
}

}  // namespace troupe::train
