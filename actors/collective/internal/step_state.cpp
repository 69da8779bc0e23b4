#include "actors/collective/internal/step_state.hpp"

#include <algorithm>

namespace troupe::collective::internal {

void StepState::reset(const ReducePlan& plan, std::uint32_t self) {
  const auto local_ranks = static_cast<std::uint32_t>(plan.ranks_of(self).size());
  const auto contributors = static_cast<std::uint32_t>(plan.contributors().size());
  buckets.resize(plan.buckets());
  for (std::uint32_t b = 0; b < plan.buckets(); ++b) {
    buckets[b].gradients.assign(local_ranks, Buffer{});
    buckets[b].ranks_missing = local_ranks;
    buckets[b].slices_missing = plan.end_slice(b) - plan.first_slice(b);
    buckets[b].sum = Buffer{};
  }
  buckets_missing = plan.buckets();

  slices.resize(plan.slices().size());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::uint32_t owner = plan.slices()[i].owner;
    const bool sums_here = owner == self || owner == Slice::kAllNodes;
    slices[i].parts.clear();
    slices[i].nodes_missing = sums_here ? contributors - (local_ranks > 0 ? 1 : 0) : 0;
    slices[i].contributed = local_ranks == 0;
    slices[i].done = false;
    slices[i].sum = Buffer{};
  }

  const std::size_t width = plan.spec().extras;
  rank_extras.assign(local_ranks * width, 0.0);
  rank_has_extras.assign(local_ranks, 0);
  rank_extras_missing = width > 0 ? local_ranks : 0;
  slot_extras.assign(plan.parts().size() * width, 0.0);
  node_has_extras.assign(plan.nodes(), 0);
  const std::uint32_t owner = plan.extras_owner();
  const bool adds_here = owner == self || owner == Slice::kAllNodes;
  node_extras_missing = adds_here ? plan.extras_senders() : std::min(1u, plan.extras_senders());
  extras_sum.clear();
  extras_told = false;
}

}  // namespace troupe::collective::internal
