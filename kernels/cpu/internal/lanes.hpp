#pragma once

#include <cstddef>
#include <cstdint>

/// Loops over Activation::Layout::interleaved: a vector holds one element of eight samples, so any
/// shape fills it, and each lane adds up in one order that only the shapes decide. Products and
/// sums are fused (rounded once) in every version of them, so all give the same bits.
namespace troupe::kernels::cpu {

using Index = std::ptrdiff_t;

/// Images of eight samples: [channels][height][row][8], of which `width` columns from `left` on are
/// the image and the others zeros.
struct LaneImage {
  Index channels = 0, height = 0, width = 0;
  Index left = 0;  ///< zero columns before, and at least as many after
  Index row = 0;   ///< columns of a row in memory

  // Always inlined: what is compiled for one CPU must not be linked in for another.
  [[gnu::always_inline]] Index row_floats() const { return row * 8; }
  [[gnu::always_inline]] Index channel_floats() const { return height * row * 8; }
  [[gnu::always_inline]] Index floats() const { return channels * height * row * 8; }
};

/// y[o][r][c] = bias[o] + sum over i, ky, kx of w[o][i][ky][kx] x[i][r s + ky - p][c s + kx - p].
struct Correlation {
  LaneImage x;
  Index out_channels = 0, out_height = 0, out_width = 0;
  Index kernel = 1, stride = 1, padding = 0;  ///< padding may be negative (the edge is left out)

  /// Zero columns that `x` needs on either side.
  Index columns_needed() const;
  /// Output channels are computed in so many blocks of nearly one size.
  [[gnu::always_inline]] Index blocks() const {
    return (out_channels + kMaxChannels - 1) / kMaxChannels;
  }
  [[gnu::always_inline]] Index block_begin(Index block) const {
    return block * out_channels / blocks();
  }

  static constexpr Index kMaxChannels = 6;  ///< of one block
  static constexpr Index kMaxColumns = 6;   ///< computed at once
};

/// The loops that were made twice, for any machine and for AVX2 with FMA.
struct LaneLoops {
  /// Row `r` of y for the channels of `block`. `weights` are those of the block,
  /// [in][kernel][kernel][channels of the block]; `bias` is the block's or null for zeros. y's
  /// channels are `channel_floats` apart.
  void (*correlate_row)(const Correlation& shape, Index block, Index r, const float* x,
                        const float* weights, const float* bias, float* y, Index channel_floats);

  /// Adds, lane by lane, d(sum of dy y)/dw to `sums` [out][in][kernel][kernel][8] and d/dbias to
  /// `bias_sums` [out][8], for a correlation of stride 1 whose output gradient `dy` is described by
  /// `dy_image` (of the height and width that are there to add).
  void (*correlate_weights)(const Correlation& shape, const LaneImage& dy_image, const float* x,
                            const float* dy, float* sums, float* bias_sums);

  /// y = max(x, 0) pooled over windows of `size` x `size`, of the `size` rows of x (a row has
  /// `columns`), and which element was it: its number in the window, or 255 where y is 0.
  void (*relu_pool_rows)(const float* x, Index columns, Index size, Index pooled, float* y,
                         std::uint8_t* chosen);
  /// Puts gradients back: dx of the `size` rows (rows `row_floats` apart), zeros elsewhere.
  void (*relu_unpool_rows)(const float* dy, const std::uint8_t* chosen, Index columns, Index size,
                           Index pooled, float* dx, Index row_floats);

  /// y[g][o] = bias[o] + sum over i of w[o][i] x[g][i], for `groups` of eight samples.
  void (*linear_forward)(Index groups, Index in, Index out, const float* x, const float* weights,
                         const float* bias, float* y);
  /// dx[g][i] = sum over o of w[o][i] dy[g][o].
  void (*linear_input)(Index groups, Index in, Index out, const float* dy, const float* weights,
                       float* dx);
  /// dw[o][i] = sum over samples of dy[g][o][lane] x[sample][i], for i from `begin` (a multiple of
  /// 8) to `end`; x row-major with rows of `row` floats (a multiple of 8).
  void (*linear_weights)(Index groups, Index in, Index out, Index begin, Index end, const float* x,
                         Index row, const float* dy, float* dw);

  /// Eight rows of `count` floats (`row` apart) to `count` vectors of eight, and back.
  void (*interleave)(const float* rows, Index row, Index count, float* lanes);
  void (*deinterleave)(const float* lanes, Index count, float* rows, Index row);
};

/// The fastest that this CPU can run.
const LaneLoops& lane_loops() noexcept;

/// For any CPU; and null where the machine cannot run them.
const LaneLoops& generic_lane_loops() noexcept;
const LaneLoops* avx2_lane_loops() noexcept;

/// The sum of eight lanes, always in one order.
inline float sum_of_lanes(const float* lanes) noexcept {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

}  // namespace troupe::kernels::cpu
