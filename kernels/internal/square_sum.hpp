#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace troupe::kernels {

/// Adds up the squares of floats that come in pieces, first to last, in double.
///
/// A block is summed in kLanes interleaved sums, and the blocks along a tree whose left part is the
/// largest power of two: an order that depends on the elements' places alone, not on the pieces.
///
/// Threads: one at a time.
class SquareSum {
public:
  static constexpr std::size_t kBlock = 4096;

  void add(std::span<const float> values);
  double total() const;

private:
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kMostLevels = 52;  // 2^64 floats

  double block() const;
  void close_block();

  std::array<double, kLanes> lanes_{};
  std::size_t in_block_ = 0;
  std::size_t blocks_ = 0;
  /// Sums of 2^level blocks, for each bit that is set in `blocks_`: a binary counter.
  std::array<double, kMostLevels> levels_{};
};

}  // namespace troupe::kernels
