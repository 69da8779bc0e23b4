#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::collective {

/// The ranks [begin, end) of a job, as a sub-tree of its reduction tree.
struct RankRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  std::uint32_t size() const noexcept { return end - begin; }
  bool operator==(const RankRange&) const = default;
};

/// THE order in which the values of ranks 0..R-1 are added, whatever node each one is on.
///
/// The sum over [begin, end) is the value itself for one rank, else the sum over [begin, mid) plus
/// the sum over [mid, end), with mid = begin + the largest power of two smaller than end - begin.
/// For R a power of two these are exact halves; in general every left part is a full aligned tree,
/// so a rank's place in the tree does not depend on how many ranks follow its block:
///
///     R = 6:  ((0+1) + (2+3)) + (4+5)
///
/// Every sum of the job is a pure function of the R values. (Bit for bit, but for the payload of a
/// NaN: the hardware picks one of two.)
///
/// Threads: a value type.
class Tree {
public:
  /// `ranks` must be at least 1.
  explicit Tree(std::uint32_t ranks);

  std::uint32_t ranks() const noexcept { return ranks_; }
  RankRange root() const noexcept { return {0, ranks_}; }

  /// Where a range of two ranks or more is split.
  static std::uint32_t split(RankRange range);

  /// True if `range` is a sub-tree of this tree.
  bool contains(RankRange range) const;

  /// The largest sub-trees whose ranks are all among `ranks` (ascending, no repeats), in rank
  /// order.
  std::vector<RankRange> cover(std::span<const std::uint32_t> ranks) const;

private:
  std::uint32_t ranks_;
};

}  // namespace troupe::collective
