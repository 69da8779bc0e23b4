#include "actors/train/step_sums.hpp"

#include <algorithm>

namespace troupe::train {

std::uint64_t StepSums::begin_of(std::uint32_t slice) const {
  const auto& run = plan_->slices()[slice];
  return buckets_[run.bucket].begin + run.offset;
}

std::span<const float> StepSums::floats(const Buffer& sum, std::uint32_t slice) const {
  return {reinterpret_cast<const float*>(sum.data()), plan_->slices()[slice].elements};
}

std::vector<kernels::GradientRun> StepSums::runs() const {
  std::vector<kernels::GradientRun> runs;
  for (const auto& [slice, sum] : sums_) runs.push_back({begin_of(slice), floats(sum, slice)});
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return runs;
}

std::optional<NonFinite> StepSums::find_bad(const kernels::Model& model) const {
  std::optional<NonFinite> found;
  std::uint64_t found_at = 0;
  for (const auto& [slice, sum] : sums_) {
    const auto begin = begin_of(slice);
    if (found && begin < found_at) continue;
    auto bad = find_non_finite(model, begin, floats(sum, slice));
    if (!bad) continue;
    found = std::move(bad);
    found_at = begin;
  }
  return found;
}

}  // namespace troupe::train
