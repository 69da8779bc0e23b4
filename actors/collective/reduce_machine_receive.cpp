// What other nodes send: checks, messages that come before their time, and where each goes.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/collective/internal/entry.hpp"
#include "actors/collective/internal/node_sums.hpp"
#include "actors/collective/internal/step_state.hpp"
#include "actors/collective/reduce_machine.hpp"

namespace troupe::collective {
namespace {

std::size_t bytes_in(const Partial& message) {
  std::size_t bytes = 0;
  for (const Buffer& part : message.parts) bytes += part.size();
  return bytes;
}
std::size_t bytes_in(const SliceSum& message) {
  return message.sum.size();
}
std::size_t bytes_in(const Extras& message) {
  return message.values.size() * sizeof(double);
}

Error refused(std::uint32_t from, std::string_view what) {
  return {Code::protocol_error,
          fmt::format("reduction message from node {} refused: {}", from, what)};
}

Error stale(std::uint64_t generation, std::uint64_t now) {
  return {Code::stale_generation,
          fmt::format("of generation {}, which ended before {}; dropped", generation, now)};
}

}  // namespace

Status ReduceMachine::receive(Partial message) {
  return enter(std::move(message));
}
Status ReduceMachine::receive(SliceSum message) {
  return enter(std::move(message));
}
Status ReduceMachine::receive(Extras message) {
  return enter(std::move(message));
}

template <class T>
Status ReduceMachine::enter(T message) {
  const internal::Entry entry(entered_);
  return receive_any(std::move(message));
}

template <class T>
Status ReduceMachine::receive_any(T message) {
  if (message.generation < floor_) return stale(message.generation, floor_);
  if (!active() || message.generation > generation_) {
    const std::size_t bytes = bytes_in(message);
    return keep(std::move(message), bytes);
  }
  TROUPE_TRY(check_remote(message));
  return handle(std::move(message));
}

template <class T>
Status ReduceMachine::check_remote(const T& message) const {
  if (message.plan != plan_->fingerprint())
    return refused(message.from,
                   "it reduces by another plan; give all nodes of a generation the same");
  if (message.from >= plan_->nodes() || message.from == self_)
    return refused(message.from, fmt::format("this is node {} of {}", self_, plan_->nodes()));
  if (message.step != step_ && message.step != step_ + 1)
    return refused(message.from,
                   fmt::format("it is of step {} while step {} is reduced", message.step, step_));
  return {};
}

Status ReduceMachine::check_local(std::uint64_t generation, std::uint64_t step, std::uint32_t rank,
                                  std::size_t& local) const {
  if (generation < floor_) return stale(generation, floor_);
  if (!active() || generation != generation_)
    return {Code::failed_precondition,
            fmt::format("generation {} is not being reduced here", generation)};
  if (step != step_)
    return {
        Code::failed_precondition,
        fmt::format("rank {} gave values of step {} while step {} is reduced", rank, step, step_)};
  const auto ranks = plan_->ranks_of(self_);
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end() || *found != rank)
    return {Code::invalid_argument, fmt::format("rank {} is not placed on this node", rank)};
  local = static_cast<std::size_t>(found - ranks.begin());
  return {};
}

Status ReduceMachine::keep(Message message, std::size_t bytes) {
  if (kept_.size() >= options_.max_kept_messages || bytes > options_.max_kept_bytes - kept_bytes_)
    return {
        Code::resource_exhausted,
        fmt::format("{} messages with {} bytes already wait for a generation to start; start it, "
                    "or raise max_kept_bytes",
                    kept_.size(), kept_bytes_)};
  kept_bytes_ += bytes;
  kept_.push_back(std::move(message));
  return {};
}

void ReduceMachine::replay_kept() {
  auto waiting = std::exchange(kept_, {});
  kept_bytes_ = 0;
  for (Message& message : waiting) {
    Status status = std::visit([this](auto& m) { return receive_any(std::move(m)); }, message);
    if (!status.ok() && status.code() != Code::stale_generation)
      effects_.kept_refused(std::move(status).error());
  }
}

Status ReduceMachine::handle(Partial message) {
  if (message.slice >= plan_->slices().size())
    return refused(message.from, fmt::format("there is no slice {}", message.slice));
  const Slice& cut = plan_->slices()[message.slice];
  if (cut.owner != self_ && cut.owner != Slice::kAllNodes)
    return refused(message.from,
                   fmt::format("slice {} belongs to node {}", message.slice, cut.owner));
  const auto slots = sums_->slots_of(message.from);
  if (slots.empty() || message.parts.size() != slots.size())
    return refused(message.from, fmt::format("it has {} parts where its ranks make {}",
                                             message.parts.size(), slots.size()));
  for (const Buffer& part : message.parts)
    TROUPE_TRY(internal::check_floats(part, cut.elements, [&] {
      return fmt::format("a part of slice {} from node {}", message.slice, message.from);
    }));
  auto& state = state_of(message.step).slices[message.slice];
  if (state.done || (!state.parts.empty() && !state.parts[slots[0]].empty()))
    return refused(message.from, fmt::format("slice {} came twice", message.slice));
  state.parts.resize(sums_->slots());
  for (std::size_t i = 0; i < slots.size(); ++i)
    state.parts[slots[i]] = std::move(message.parts[i]);
  --state.nodes_missing;
  if (message.step != step_) return {};
  TROUPE_TRY(settle_slice(message.slice));
  return settle_step();
}

Status ReduceMachine::handle(SliceSum message) {
  if (message.slice >= plan_->slices().size())
    return refused(message.from, fmt::format("there is no slice {}", message.slice));
  const Slice& cut = plan_->slices()[message.slice];
  if (cut.owner != message.from)
    return refused(message.from, fmt::format("slice {} is not its own", message.slice));
  TROUPE_TRY(internal::check_floats(message.sum, cut.elements, [&] {
    return fmt::format("the sum of slice {} from node {}", message.slice, message.from);
  }));
  auto& state = state_of(message.step).slices[message.slice];
  if (!state.contributed)
    return refused(message.from, fmt::format("slice {} cannot be summed: this node's part was not "
                                             "sent",
                                             message.slice));
  if (state.done || !state.sum.empty())
    return refused(message.from, fmt::format("slice {} came twice", message.slice));
  state.sum = std::move(message.sum);
  if (message.step != step_) return {};
  TROUPE_TRY(settle_slice(message.slice));
  return settle_step();
}

Status ReduceMachine::handle(Extras message) {
  const std::uint32_t owner = plan_->extras_owner();
  if (owner != self_ && owner != Slice::kAllNodes) return handle_extras_sum(std::move(message));
  const std::size_t width = plan_->spec().extras;
  const auto slots = sums_->slots_of(message.from);
  if (!plan_->sends_extras(message.from) || message.values.size() != slots.size() * width)
    return refused(message.from, fmt::format("it has {} extra values where its ranks make {}",
                                             message.values.size(), slots.size() * width));
  auto& state = state_of(message.step);
  if (state.node_has_extras[message.from] != 0)
    return refused(message.from, "its extra values came twice");
  state.node_has_extras[message.from] = 1;
  for (std::size_t i = 0; i < slots.size(); ++i)
    std::copy_n(message.values.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                state.slot_extras.begin() + static_cast<std::ptrdiff_t>(slots[i] * width));
  --state.node_extras_missing;
  if (message.step != step_) return {};
  return settle_step();
}

Status ReduceMachine::handle_extras_sum(Extras message) {
  if (message.from != plan_->extras_owner())
    return refused(message.from,
                   fmt::format("the extra values belong to node {}", plan_->extras_owner()));
  if (message.values.size() != plan_->spec().extras)
    return refused(message.from, fmt::format("a sum of {} extra values where the plan says {}",
                                             message.values.size(), plan_->spec().extras));
  auto& state = state_of(message.step);
  if (state.node_extras_missing == 0 ||
      (plan_->sends_extras(self_) && state.node_has_extras[self_] == 0))
    return refused(message.from, "a sum of extra values that came twice, or too early");
  state.extras_sum = std::move(message.values);
  state.node_extras_missing = 0;
  if (message.step != step_) return {};
  return settle_step();
}

}  // namespace troupe::collective
