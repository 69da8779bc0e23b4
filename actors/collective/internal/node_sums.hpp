#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actors/collective/plan.hpp"
#include "actors/collective/tree_sum.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::collective::internal {

/// The sums that one node computes for a plan, over the f32 of Buffers.
///
/// A slice's parts stand in slots: one for each part of the plan, in tree order. Gradients stand in
/// the order of the node's ranks and hold all of their bucket.
///
/// Threads: one at a time.
class NodeSums {
public:
  NodeSums(const ReducePlan& plan, std::uint32_t self);

  std::size_t slots() const noexcept { return slot_count_; }
  /// Slots of `node`'s parts, in their order.
  std::span<const std::uint32_t> slots_of(std::uint32_t node) const { return slots_of_[node]; }

  /// Ranks in local part `index`; its only one when there is but one.
  std::size_t ranks_in_part(std::uint32_t index) const { return local_parts_[index].count; }
  std::size_t first_rank_of_part(std::uint32_t index) const { return local_parts_[index].first; }

  /// Local part `index` of a slice, from the gradients of its ranks.
  void add_part(std::uint32_t index, std::span<const Buffer> gradients, const Slice& slice,
                float* out);

  /// The sum over all ranks of a slice that this node owns: local ranks straight from their
  /// gradients, so each is read once.
  void add_owned(std::span<const Buffer> gradients, std::span<const Buffer> parts,
                 const Slice& slice, float* out);

  /// The sum over all ranks from the parts alone.
  void add_direct(std::span<const Buffer> parts, const Slice& slice, float* out);

  /// Extra values: rows of local ranks to rows of local parts, rows of slots to the sum.
  std::vector<double> add_extra_parts(std::span<const double> ranks, std::size_t width) const;
  std::vector<double> add_extras(std::span<const double> slots, std::size_t width) const;

private:
  struct LocalPart {
    std::size_t first;  ///< local rank
    std::size_t count;
    TreeSum sum;
  };
  struct Operand {
    bool is_rank;
    std::uint32_t index;  ///< local rank, or slot
  };

  std::size_t slot_count_;
  std::vector<std::vector<std::uint32_t>> slots_of_;
  std::vector<LocalPart> local_parts_;
  std::vector<Operand> owned_operands_;
  std::unique_ptr<TreeSum> owned_;
  std::unique_ptr<TreeSum> direct_;
  std::vector<const float*> pointers_;  ///< kept to save its allocation
};

}  // namespace troupe::collective::internal
