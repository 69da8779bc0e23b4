#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "actors/collective/plan.hpp"
#include "actors/train/non_finite.hpp"
#include "actors/train/replica.hpp"
#include "kernels/gradient.hpp"
#include "kernels/model.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::train {

/// The gradients of the step in flight, summed over all ranks: slices in any order, as they come.
///
/// Threads: one at a time.
class StepSums {
public:
  StepSums() = default;
  /// `buckets` are the plan's.
  StepSums(std::shared_ptr<const collective::ReducePlan> plan, std::vector<Bucket> buckets)
      : plan_(std::move(plan)), buckets_(std::move(buckets)) {}

  void add(std::uint32_t slice, Buffer sum) { sums_.emplace_back(slice, std::move(sum)); }
  void clear() { sums_.clear(); }

  /// In the order of the flat layout; lasts until the next change.
  std::vector<kernels::GradientRun> runs() const;
  /// The last value of the flat layout that is not finite, if any is not: the same on all nodes.
  std::optional<NonFinite> find_bad(const kernels::Model& model) const;

private:
  std::uint64_t begin_of(std::uint32_t slice) const;
  std::span<const float> floats(const Buffer& sum, std::uint32_t slice) const;

  std::shared_ptr<const collective::ReducePlan> plan_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<std::uint32_t, Buffer>> sums_;  ///< slice, sum
};

}  // namespace troupe::train
