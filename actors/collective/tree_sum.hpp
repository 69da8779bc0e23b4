#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/collective/tree.hpp"

namespace troupe::collective {

/// Adds the vectors of several sub-trees into that of the sub-tree above them, in tree order and in
/// one pass over memory: block by block, so that what lies between stays in the first-level cache.
///
/// Threads: one at a time.
class TreeSum {
public:
  /// `parts` are sub-trees of `whole`, in rank order, disjoint, and together all of it.
  TreeSum(RankRange whole, std::span<const RankRange> parts);

  std::size_t parts() const noexcept { return part_count_; }

  /// `operands[i]` is the vector of `parts[i]`. `out` may be one of them. A single part is copied.
  void run(float* out, std::span<const float* const> operands, std::size_t count);

  /// The same for a few doubles per part; operands[i * width .. ] is part i.
  std::vector<double> run(std::span<const double> operands, std::size_t width) const;

private:
  /// One loop of sum.hpp. Places below part_count_ are operands, those above are scratch.
  enum class Op : std::uint8_t { add2, add3_left, add3_right, add4 };
  struct Step {
    Op op;
    std::uint32_t in[4];
    std::uint32_t out;
  };
  class Builder;

  void run_block(float* out, std::span<const float* const> operands, std::size_t at,
                 std::size_t count);

  std::size_t part_count_;
  std::vector<Step> steps_;
  std::uint32_t scratch_count_ = 0;
  std::vector<float> scratch_;
};

}  // namespace troupe::collective
