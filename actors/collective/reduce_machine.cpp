#include "actors/collective/reduce_machine.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "actors/collective/internal/entry.hpp"
#include "actors/collective/internal/node_sums.hpp"
#include "actors/collective/internal/step_state.hpp"

namespace troupe::collective {
namespace {

std::size_t bytes_of(const Slice& slice) {
  return slice.elements * sizeof(float);
}

}  // namespace

ReduceMachine::ReduceMachine(Options options, Effects& effects)
    : options_(std::move(options)),
      effects_(effects),
      now_(std::make_unique<internal::StepState>()),
      next_(std::make_unique<internal::StepState>()) {
  if (options_.pool == nullptr) options_.pool = std::make_shared<BufferPool>();
}

ReduceMachine::~ReduceMachine() = default;

Status ReduceMachine::start(std::shared_ptr<const ReducePlan> plan, std::uint32_t self,
                            std::uint64_t generation, std::uint64_t step) {
  const internal::Entry entry(entered_);
  TROUPE_CHECK(plan != nullptr, "a reduction without a plan");
  if (self >= plan->nodes())
    return {Code::invalid_argument,
            fmt::format("node {} of a plan for nodes 0 to {}", self, plan->nodes() - 1)};
  if (generation < floor_ || (active() && generation == generation_))
    return {Code::failed_precondition,
            fmt::format("generation {} cannot start after generation {}; generations only grow",
                        generation, generation_)};
  if (plan_ != plan || self_ != self || sums_ == nullptr) {
    plan_ = std::move(plan);
    self_ = self;
    sums_ = std::make_unique<internal::NodeSums>(*plan_, self_);
    order_sends();
  }
  generation_ = floor_ = generation;
  step_ = step;
  now_->reset(*plan_, self_);
  next_->reset(*plan_, self_);
  TROUPE_TRY(catch_up());
  replay_kept();
  return {};
}

void ReduceMachine::abort() {
  const internal::Entry entry(entered_);
  if (!active()) return;
  floor_ = generation_ + 1;
  plan_.reset();
  sums_.reset();
  *now_ = {};
  *next_ = {};
}

/// Own slices last: what others wait for goes first. Among owners, each node begins behind itself,
/// so that not all send to the same one.
void ReduceMachine::order_sends() {
  send_order_.resize(plan_->slices().size());
  std::iota(send_order_.begin(), send_order_.end(), 0u);
  // Owners in turns: the first slice of each, then the second.
  std::vector<std::tuple<std::uint32_t, bool, std::uint32_t, std::uint32_t>> key;
  key.reserve(send_order_.size());
  const Slice* before = nullptr;
  std::uint32_t nth = 0;
  for (const Slice& s : plan_->slices()) {
    const bool same = before != nullptr && before->bucket == s.bucket && before->owner == s.owner;
    nth = same ? nth + 1 : 0;
    const std::uint32_t turn =
        s.owner == Slice::kAllNodes ? 0 : (s.owner + plan_->nodes() - self_ - 1) % plan_->nodes();
    key.emplace_back(s.bucket, s.owner == self_, nth, turn);
    before = &s;
  }
  std::stable_sort(send_order_.begin(), send_order_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key[a] < key[b]; });
}

Status ReduceMachine::add_gradient(std::uint64_t generation, std::uint64_t step, std::uint32_t rank,
                                   std::uint32_t bucket, Buffer gradient) {
  const internal::Entry entry(entered_);
  std::size_t local = 0;
  TROUPE_TRY(check_local(generation, step, rank, local));
  if (bucket >= plan_->buckets())
    return {Code::invalid_argument,
            fmt::format("a gradient for bucket {} of a plan with {}", bucket, plan_->buckets())};
  TROUPE_TRY(internal::check_floats(gradient, plan_->spec().bucket_elements[bucket], [&] {
    return fmt::format("the gradient of rank {} for bucket {}", rank, bucket);
  }));
  auto& state = now_->buckets[bucket];
  if (!state.gradients[local].empty())
    return {Code::failed_precondition,
            fmt::format("rank {} gave its gradient for bucket {} of step {} twice", rank, bucket,
                        step)};
  state.gradients[local] = std::move(gradient);
  if (--state.ranks_missing > 0) return {};
  TROUPE_TRY(contribute(bucket));
  return settle_step();
}

Status ReduceMachine::add_extras(std::uint64_t generation, std::uint64_t step, std::uint32_t rank,
                                 std::span<const double> values) {
  const internal::Entry entry(entered_);
  std::size_t local = 0;
  TROUPE_TRY(check_local(generation, step, rank, local));
  const std::size_t width = plan_->spec().extras;
  if (values.size() != width)
    return {Code::shape_mismatch, fmt::format("rank {} gave {} extra values where the plan says {}",
                                              rank, values.size(), width)};
  if (width == 0) return {};
  if (now_->rank_has_extras[local] != 0)
    return {Code::failed_precondition,
            fmt::format("rank {} gave its extra values of step {} twice", rank, step)};
  now_->rank_has_extras[local] = 1;
  std::copy(values.begin(), values.end(),
            now_->rank_extras.begin() + static_cast<std::ptrdiff_t>(local * width));
  if (--now_->rank_extras_missing > 0) return {};
  contribute_extras();
  return settle_step();
}

Status ReduceMachine::contribute(std::uint32_t bucket) {
  const auto first = send_order_.begin() + plan_->first_slice(bucket);
  const auto last = send_order_.begin() + plan_->end_slice(bucket);
  for (auto slice = first; slice != last; ++slice) TROUPE_TRY(contribute_slice(*slice));
  return {};
}

/// All local gradients of the slice's bucket are there.
Status ReduceMachine::contribute_slice(std::uint32_t slice) {
  const Slice& cut = plan_->slices()[slice];
  auto& state = now_->slices[slice];
  if (cut.owner == self_) {
    state.contributed = true;
    return settle_slice(slice);
  }
  TROUPE_ASSIGN(auto parts, local_parts(slice));
  Partial message{generation_, step_, plan_->fingerprint(), self_, slice, std::move(parts)};
  state.contributed = true;
  if (cut.owner != Slice::kAllNodes) {
    effects_.send(cut.owner, std::move(message));
    return {};
  }
  const auto slots = sums_->slots_of(self_);
  state.parts.resize(sums_->slots());
  for (std::size_t i = 0; i < slots.size(); ++i) state.parts[slots[i]] = message.parts[i];
  send_to_others(message);
  return settle_slice(slice);
}

/// The sums of this node's sub-trees; where one is a single rank, its gradient itself.
Result<std::vector<Buffer>> ReduceMachine::local_parts(std::uint32_t slice) {
  const Slice& cut = plan_->slices()[slice];
  const auto& gradients = now_->buckets[cut.bucket].gradients;
  std::vector<Buffer> parts;
  for (std::uint32_t i = 0; i < plan_->parts_of(self_).size(); ++i) {
    if (sums_->ranks_in_part(i) == 1) {
      parts.push_back(
          gradients[sums_->first_rank_of_part(i)].slice(cut.offset * sizeof(float), bytes_of(cut)));
      continue;
    }
    TROUPE_ASSIGN(auto sum, options_.pool->acquire(bytes_of(cut)));
    sums_->add_part(i, gradients, cut, reinterpret_cast<float*>(sum.data()));
    parts.push_back(std::move(sum));
  }
  return parts;
}

/// Finishes a slice of the current step if all it needs is there.
Status ReduceMachine::settle_slice(std::uint32_t slice) {
  const Slice& cut = plan_->slices()[slice];
  auto& state = now_->slices[slice];
  if (state.done) return {};
  const bool sums_here = cut.owner == self_ || cut.owner == Slice::kAllNodes;
  if (sums_here ? state.nodes_missing > 0 || !state.contributed : state.sum.empty()) return {};
  TROUPE_ASSIGN(auto place, place_for(slice));
  if (sums_here) {
    float* out = reinterpret_cast<float*>(place.data());
    if (cut.owner == self_)
      sums_->add_owned(now_->buckets[cut.bucket].gradients, state.parts, cut, out);
    else
      sums_->add_direct(state.parts, cut, out);
    state.parts.clear();
  } else if (options_.delivery == Delivery::buckets) {
    std::memcpy(place.data(), state.sum.data(), bytes_of(cut));
  } else {
    place = std::move(state.sum);
  }
  state.sum = Buffer{};
  deliver_slice(slice, std::move(place));
  return {};
}

/// Memory for the sum of a slice.
Result<Buffer> ReduceMachine::place_for(std::uint32_t slice) {
  const Slice& cut = plan_->slices()[slice];
  if (options_.delivery == Delivery::slices) {
    if (!now_->slices[slice].sum.empty()) return Buffer{};
    return options_.pool->acquire(bytes_of(cut));
  }
  auto& bucket = now_->buckets[cut.bucket];
  if (bucket.sum.empty()) {
    TROUPE_ASSIGN(bucket.sum, options_.pool->acquire(plan_->spec().bucket_elements[cut.bucket] *
                                                     sizeof(float)));
  }
  return bucket.sum.slice(cut.offset * sizeof(float), bytes_of(cut));
}

void ReduceMachine::deliver_slice(std::uint32_t slice, Buffer sum) {
  const Slice& cut = plan_->slices()[slice];
  auto& bucket = now_->buckets[cut.bucket];
  now_->slices[slice].done = true;
  if (cut.owner == self_)
    send_to_others(SliceSum{generation_, step_, plan_->fingerprint(), self_, slice, sum});
  if (options_.delivery == Delivery::slices) effects_.slice_done(step_, slice, std::move(sum));
  if (--bucket.slices_missing > 0) return;
  for (Buffer& gradient : bucket.gradients) gradient = Buffer{};
  --now_->buckets_missing;
  effects_.bucket_done(step_, cut.bucket, std::move(bucket.sum));
}

/// All local ranks have given their extra values, or there is none.
void ReduceMachine::contribute_extras() {
  const std::size_t width = plan_->spec().extras;
  Extras message{generation_, step_, plan_->fingerprint(), self_,
                 sums_->add_extra_parts(now_->rank_extras, width)};
  now_->node_has_extras[self_] = 1;
  const std::uint32_t owner = plan_->extras_owner();
  if (owner != self_ && owner != Slice::kAllNodes) return effects_.send(owner, std::move(message));
  const auto slots = sums_->slots_of(self_);
  for (std::size_t i = 0; i < slots.size(); ++i)
    std::copy_n(message.values.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                now_->slot_extras.begin() + static_cast<std::ptrdiff_t>(slots[i] * width));
  --now_->node_extras_missing;
  if (owner == Slice::kAllNodes) send_to_others(message);
}

/// The owner of the extras has all of them.
void ReduceMachine::tell_extras() {
  if (plan_->extras_owner() != self_ || plan_->extras_senders() == 0 ||
      now_->node_extras_missing > 0 || now_->extras_told)
    return;
  now_->extras_told = true;
  if (plan_->spec().extras > 0)
    now_->extras_sum = sums_->add_extras(now_->slot_extras, plan_->spec().extras);
  send_to_others(Extras{generation_, step_, plan_->fingerprint(), self_, now_->extras_sum});
}

/// Each node begins behind itself.
template <class T>
void ReduceMachine::send_to_others(const T& message) {
  for (std::uint32_t i = 1; i < plan_->nodes(); ++i)
    effects_.send((self_ + i) % plan_->nodes(), message);
}

/// Ends the step if it is complete, and those behind it that are by then.
Status ReduceMachine::settle_step() {
  tell_extras();
  while (now_->buckets_missing == 0 && now_->node_extras_missing == 0) {
    const std::size_t width = plan_->spec().extras;
    auto extras = std::move(now_->extras_sum);
    if (width > 0 && plan_->extras_owner() == Slice::kAllNodes)
      extras = sums_->add_extras(now_->slot_extras, width);
    const std::uint64_t done = step_++;
    std::swap(now_, next_);
    next_->reset(*plan_, self_);
    effects_.step_done(done, std::move(extras));
    TROUPE_TRY(catch_up());
  }
  return {};
}

/// At the beginning of a step: what needs no local gradient, and what came early.
Status ReduceMachine::catch_up() {
  if (plan_->ranks_of(self_).empty()) contribute_extras();
  tell_extras();
  for (std::uint32_t slice = 0; slice < now_->slices.size(); ++slice)
    TROUPE_TRY(settle_slice(slice));
  return {};
}

}  // namespace troupe::collective
