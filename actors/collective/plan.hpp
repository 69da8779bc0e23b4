#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actors/collective/tree.hpp"
#include "runtime/base/status.hpp"

namespace troupe::collective {

/// What changes the speed of a reduction and never its result. Equal on all nodes.
struct Tuning {
  std::uint64_t chunk_bytes = 512 << 10;  ///< a bucket travels in runs of this size, so that
                                          ///< transfer and addition overlap, in cache
  std::uint64_t whole_bytes =
      256 << 10;                         ///< a bucket up to this size has one owner: fewer messages
  std::uint64_t direct_bytes = 1 << 20;  ///< while a node sends at most this much for a bucket
                                         ///< that way, all send to all: one hop, not two
  bool direct_pair = true;               ///< two nodes always do: it costs them no more bytes

  // Among many nodes. A message costs its sender about what 6 KB cost on a fast network.
  std::uint32_t direct_nodes = 32;      ///< among more, nothing goes from all to all
  std::uint64_t owner_bytes = 4 << 20;  ///< a bucket has one owner while that takes in at most this
  std::uint64_t least_bytes = 4 << 10;  ///< one with several is cut into no smaller slices
};

/// All that the nodes must agree on before they reduce. Travels inside messages.
struct PlanSpec {
  std::vector<std::uint32_t> node_of_rank;     ///< placement; index is the rank
  std::uint32_t nodes = 1;                     ///< some may hold no rank; each gets all sums
  std::vector<std::uint64_t> bucket_elements;  ///< f32 values of each bucket, one behind the other
  std::uint32_t extras = 0;  ///< doubles of each rank that are summed once a step (loss, counts)
  Tuning tuning;
};

/// One rank per node and one bucket: the plan of a plain all-reduce.
PlanSpec all_reduce_spec(std::uint32_t nodes, std::uint64_t elements, const Tuning& tuning = {});

/// A run of a bucket that travels and is summed as one.
struct Slice {
  static constexpr std::uint32_t kAllNodes = 0xffffffff;

  std::uint32_t bucket = 0;
  std::uint32_t owner = 0;   ///< the node that sums it, or kAllNodes: each sums for itself
  std::uint64_t offset = 0;  ///< in its bucket, in elements; a multiple of 16
  std::uint64_t elements = 0;

  bool operator==(const Slice&) const = default;
};

/// A sub-tree that one node holds all ranks of.
struct Part {
  RankRange range;
  std::uint32_t node = 0;
  std::uint32_t index = 0;  ///< among the parts of its node
};

/// Who sends what to whom so that every node gets the sum of all ranks for every bucket.
///
/// Each node adds up the sub-trees it holds (its parts), for each slice. Parts go to the slice's
/// owner, which adds them in tree order and sends the sum to all: a reduce-scatter followed by an
/// all-gather. Small slices have no owner: parts go to all. The result's bits depend on neither.
/// So a node sends, per bucket with k owners, k parts; and each owner its sum to all.
///
/// Threads: immutable, any.
class ReducePlan {
public:
  /// Errors: `invalid_argument` naming the value that does not fit.
  static Result<std::shared_ptr<const ReducePlan>> make(PlanSpec spec);

  const PlanSpec& spec() const noexcept { return spec_; }
  const Tree& tree() const noexcept { return tree_; }
  std::uint32_t nodes() const noexcept { return spec_.nodes; }
  std::uint32_t ranks() const noexcept { return tree_.ranks(); }
  std::uint32_t buckets() const noexcept {
    return static_cast<std::uint32_t>(spec_.bucket_elements.size());
  }

  /// Equal for equal plans; goes with every message.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  /// Ranks of `node`, ascending.
  std::span<const std::uint32_t> ranks_of(std::uint32_t node) const { return ranks_of_[node]; }
  /// Sub-trees of `node`, in rank order.
  std::span<const RankRange> parts_of(std::uint32_t node) const { return parts_of_[node]; }
  /// Those of all nodes, in tree order.
  std::span<const Part> parts() const noexcept { return parts_; }
  /// Nodes with at least one rank.
  std::span<const std::uint32_t> contributors() const noexcept { return contributors_; }

  /// All slices, bucket after bucket, by offset.
  std::span<const Slice> slices() const noexcept { return slices_; }
  std::uint32_t first_slice(std::uint32_t bucket) const { return first_slice_[bucket]; }
  std::uint32_t end_slice(std::uint32_t bucket) const { return first_slice_[bucket + 1]; }

  /// True if `node` tells the others its extras at each step. Nodes without a rank do even when
  /// there are none to sum: without that the others could run ahead of them without bound.
  bool sends_extras(std::uint32_t node) const {
    return spec_.extras > 0 || ranks_of_[node].empty();
  }
  /// Nodes of which that is true.
  std::uint32_t extras_senders() const {
    return spec_.extras > 0 ? nodes() : nodes() - static_cast<std::uint32_t>(contributors_.size());
  }
  /// The node that adds the extras up and tells the others the sum; kAllNodes: each does for
  /// itself.
  std::uint32_t extras_owner() const {
    return nodes() <= spec_.tuning.direct_nodes ? Slice::kAllNodes : contributors_.back();
  }

private:
  explicit ReducePlan(PlanSpec spec);
  void place_ranks();
  void cut_bucket(std::uint32_t bucket);
  std::uint64_t owners_of(std::uint64_t bytes) const;
  void cut_run(Slice run);

  PlanSpec spec_;
  Tree tree_;
  std::vector<std::vector<std::uint32_t>> ranks_of_;
  std::vector<std::vector<RankRange>> parts_of_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> contributors_;
  std::vector<Slice> slices_;
  std::vector<std::uint32_t> first_slice_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace troupe::collective
