// The loops of LaneLoops, over a `Vector` of eight floats. Included by each source that defines one
// (in an unnamed namespace, so that code for one CPU never stands in for another's), with
//   load(const float*), store(float*, Vector), broadcast(float), zero(),
//   fma(Vector a, Vector b, Vector sum) = a * b + sum, rounded once,
//   add(Vector, Vector), transpose(Vector (&)[8]),
//   greater_or_nan(a, b): lanes of a where a > b or a is NaN, as a Mask,
//   positive_or_nan(a), select(Mask, a, b), and the same for eight bytes of `Chosen`.

template <int kChannels, int kColumns>
void correlate_block(const Correlation& s, Index ky_begin, Index ky_end, Index kx_begin,
                     Index kx_end, const float* x, const float* w, const float* bias, float* y,
                     Index channel_floats) {
  Vector sums[kChannels][kColumns];
#pragma GCC unroll 8
  for (int o = 0; o < kChannels; ++o) {
    const Vector start = bias != nullptr ? broadcast(bias[o]) : zero();
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) sums[o][c] = start;
  }
  const Index step = s.stride * 8;
  for (Index i = 0; i < s.x.channels; ++i)
    for (Index ky = ky_begin; ky < ky_end; ++ky) {
      const float* from = x + i * s.x.channel_floats() + ky * s.x.row_floats() + kx_begin * 8;
      const float* weight = w + ((i * s.kernel + ky) * s.kernel + kx_begin) * kChannels;
      for (Index kx = kx_begin; kx < kx_end; ++kx, from += 8, weight += kChannels) {
        Vector columns[kColumns];
#pragma GCC unroll 8
        for (int c = 0; c < kColumns; ++c) columns[c] = load(from + c * step);
#pragma GCC unroll 8
        for (int o = 0; o < kChannels; ++o) {
          const Vector factor = broadcast(weight[o]);
#pragma GCC unroll 8
          for (int c = 0; c < kColumns; ++c) sums[o][c] = fma(factor, columns[c], sums[o][c]);
        }
      }
    }
#pragma GCC unroll 8
  for (int o = 0; o < kChannels; ++o)
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) store(y + o * channel_floats + c * 8, sums[o][c]);
}

using CorrelateBlock = void (*)(const Correlation&, Index, Index, Index, Index, const float*,
                                const float*, const float*, float*, Index);

// By channels and columns; their product fits the registers beside what is loaded.
template <int kChannels>
constexpr CorrelateBlock kCorrelateBlocks[] = {
    correlate_block<kChannels, 1>,
    correlate_block<kChannels, 2>,
    correlate_block<kChannels, kChannels <= 4 ? 3 : 2>,
    correlate_block<kChannels, kChannels <= 3 ? 4 : 2>,
    correlate_block<kChannels, kChannels <= 2 ? 5 : 2>,
    correlate_block<kChannels, kChannels <= 2 ? 6 : 2>};
constexpr Index kColumnsAtOnce[] = {6, 6, 4, 3, 2, 2};
constexpr const CorrelateBlock* kByChannels[] = {kCorrelateBlocks<1>, kCorrelateBlocks<2>,
                                                 kCorrelateBlocks<3>, kCorrelateBlocks<4>,
                                                 kCorrelateBlocks<5>, kCorrelateBlocks<6>};

Index smaller(Index a, Index b) { return a < b ? a : b; }
Index greater(Index a, Index b) { return a > b ? a : b; }

void correlate_row(const Correlation& s, Index block, Index r, const float* x,
                   const float* weights, const float* bias, float* y, Index channel_floats) {
  const Index channels = s.block_begin(block + 1) - s.block_begin(block);
  const Index at_once = kColumnsAtOnce[channels - 1];
  const Index pieces = (s.out_width + at_once - 1) / at_once;
  // Rows and columns of the window that lie outside for all of a piece add nothing.
  const Index top = r * s.stride - s.padding;
  const Index ky_begin = greater(0, -top);
  const Index ky_end = smaller(s.kernel, s.x.height - top);
  const float* row = x + top * s.x.row_floats() + s.x.left * 8;
  for (Index piece = 0; piece < pieces; ++piece) {
    const Index begin = piece * s.out_width / pieces;
    const Index end = (piece + 1) * s.out_width / pieces;
    const Index first = begin * s.stride - s.padding;
    const Index last = (end - 1) * s.stride - s.padding;
    const Index kx_begin = greater(0, -last);
    const Index kx_end = smaller(s.kernel, s.x.width - first);
    kByChannels[channels - 1][end - begin - 1](s, ky_begin, ky_end, kx_begin, kx_end,
                                               row + first * 8, weights, bias, y + begin * 8,
                                               channel_floats);
  }
}

template <int kChannels, int kTaps>
void weights_block(Index rows, Index columns, const float* x, Index x_row, const float* dy,
                   Index dy_row, Index dy_channel, float* sums, Index sums_channel) {
  Vector total[kChannels][kTaps];
#pragma GCC unroll 8
  for (int o = 0; o < kChannels; ++o)
#pragma GCC unroll 8
    for (int k = 0; k < kTaps; ++k) total[o][k] = load(sums + o * sums_channel + k * 8);
  for (Index r = 0; r < rows; ++r) {
    const float* from = x + r * x_row;
    const float* gradient = dy + r * dy_row;
    for (Index c = 0; c < columns; ++c, from += 8, gradient += 8) {
      Vector factors[kChannels];
#pragma GCC unroll 8
      for (int o = 0; o < kChannels; ++o) factors[o] = load(gradient + o * dy_channel);
#pragma GCC unroll 8
      for (int k = 0; k < kTaps; ++k) {
        const Vector element = load(from + k * 8);
#pragma GCC unroll 8
        for (int o = 0; o < kChannels; ++o) total[o][k] = fma(factors[o], element, total[o][k]);
      }
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < kChannels; ++o)
#pragma GCC unroll 8
    for (int k = 0; k < kTaps; ++k) store(sums + o * sums_channel + k * 8, total[o][k]);
}

using WeightsBlock = void (*)(Index, Index, const float*, Index, const float*, Index, Index, float*,
                              Index);
constexpr Index kTapsAtOnce = 5;
constexpr WeightsBlock kWeightsBlocks[2][kTapsAtOnce] = {
    {weights_block<1, 1>, weights_block<1, 2>, weights_block<1, 3>, weights_block<1, 4>,
     weights_block<1, 5>},
    {weights_block<2, 1>, weights_block<2, 2>, weights_block<2, 3>, weights_block<2, 4>,
     weights_block<2, 5>}};

/// The weights of `channels` (1 or 2) output channels from `o` on, of dy's rows [begin, end).
void weights_of_rows(const Correlation& s, const LaneImage& dy_image, Index o, Index channels,
                     Index begin, Index end, const float* x, const float* dy, float* sums) {
  const Index k = s.kernel;
  const Index pieces = (k + kTapsAtOnce - 1) / kTapsAtOnce;
  for (Index i = 0; i < s.x.channels; ++i)
    for (Index ky = 0; ky < k; ++ky) {
      const Index first = greater(begin, s.padding - ky);
      const Index last = smaller(end, s.x.height + s.padding - ky);
      if (first >= last) continue;
      for (Index piece = 0; piece < pieces; ++piece) {
        const Index kx = piece * k / pieces;
        const Index taps = (piece + 1) * k / pieces - kx;
        kWeightsBlocks[channels - 1][taps - 1](
            last - first, dy_image.width,
            x + i * s.x.channel_floats() + (first + ky - s.padding) * s.x.row_floats() +
                (s.x.left + kx - s.padding) * 8,
            s.x.row_floats(),
            dy + o * dy_image.channel_floats() + first * dy_image.row_floats() + dy_image.left * 8,
            dy_image.row_floats(), dy_image.channel_floats(),
            sums + (((o * s.x.channels + i) * k + ky) * k + kx) * 8,
            s.x.channels * k * k * 8);
      }
    }
}

void correlate_weights(const Correlation& s, const LaneImage& dy_image, const float* x,
                       const float* dy, float* sums, float* bias_sums) {
  // So many rows of two channels' gradient stay in the first-level cache for all the taps.
  constexpr Index kTileFloats = 3072;
  const Index tile = greater(1, kTileFloats / (2 * dy_image.row_floats()));
  for (Index o = 0; o < s.out_channels; o += 2)
    for (Index begin = 0; begin < dy_image.height; begin += tile)
      weights_of_rows(s, dy_image, o, smaller(2, s.out_channels - o), begin,
                      smaller(begin + tile, dy_image.height), x, dy, sums);
  for (Index o = 0; o < s.out_channels; ++o) {
    Vector total = load(bias_sums + o * 8);
    for (Index r = 0; r < dy_image.height; ++r) {
      const float* row =
          dy + o * dy_image.channel_floats() + r * dy_image.row_floats() + dy_image.left * 8;
      for (Index c = 0; c < dy_image.width; ++c) total = add(total, load(row + c * 8));
    }
    store(bias_sums + o * 8, total);
  }
}

void relu_pool_rows(const float* x, Index columns, Index size, Index pooled, float* y,
                    std::uint8_t* chosen) {
  for (Index p = 0; p < pooled; ++p) {
    Vector best = load(x + p * size * 8);
    Chosen which = chosen_constant(0);
    for (Index n = 1; n < size * size; ++n) {
      const Vector element = load(x + (n / size * columns + p * size + n % size) * 8);
      const Mask better = greater_or_nan(element, best);
      best = select(better, element, best);
      which = select(better, chosen_constant(static_cast<int>(n)), which);
    }
    const Mask on = positive_or_nan(best);
    store(y + p * 8, select(on, best, zero()));
    store_chosen(chosen + p * 8, select(on, which, chosen_constant(255)));
  }
}

void relu_unpool_rows(const float* dy, const std::uint8_t* chosen, Index columns, Index size,
                      Index pooled, float* dx, Index row_floats) {
  for (Index p = 0; p < pooled; ++p) {
    const Vector gradient = load(dy + p * 8);
    const Chosen which = load_chosen(chosen + p * 8);
    for (Index n = 0; n < size * size; ++n)
      store(dx + n / size * row_floats + (p * size + n % size) * 8,
            select(equal(which, chosen_constant(static_cast<int>(n))), gradient, zero()));
  }
  for (Index r = 0; r < size; ++r)
    for (Index c = pooled * size; c < columns; ++c) store(dx + r * row_floats + c * 8, zero());
}

// kRows outputs of kGroups groups: y[g][o] = start[o] + sum over i of w[o][i] x[g][i], where w's
// element (o, i) is at o * w_out + i * w_in.
template <int kRows, int kGroups>
void linear_block(Index count, const float* x, Index x_group, const float* w, Index w_out,
                  Index w_in, const float* start, float* y, Index y_group) {
  Vector sums[kRows][kGroups];
#pragma GCC unroll 8
  for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) sums[o][g] = start != nullptr ? broadcast(start[o]) : zero();
  for (Index i = 0; i < count; ++i, x += 8, w += w_in) {
    Vector columns[kGroups];
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) columns[g] = load(x + g * x_group);
#pragma GCC unroll 8
    for (int o = 0; o < kRows; ++o) {
      const Vector factor = broadcast(w[o * w_out]);
#pragma GCC unroll 8
      for (int g = 0; g < kGroups; ++g) sums[o][g] = fma(factor, columns[g], sums[o][g]);
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) store(y + g * y_group + o * 8, sums[o][g]);
}

using LinearBlock = void (*)(Index, const float*, Index, const float*, Index, Index, const float*,
                             float*, Index);
constexpr LinearBlock kLinearBlocks[2][6] = {
    {linear_block<1, 1>, linear_block<2, 1>, linear_block<3, 1>, linear_block<4, 1>,
     linear_block<5, 1>, linear_block<6, 1>},
    {linear_block<1, 2>, linear_block<2, 2>, linear_block<3, 2>, linear_block<4, 2>,
     linear_block<5, 2>, linear_block<6, 2>}};

void linear_forward(Index groups, Index in, Index out, const float* x, const float* weights,
                    const float* bias, float* y) {
  for (Index g = 0; g < groups; g += 2)
    for (Index o = 0; o < out; o += 6)
      kLinearBlocks[smaller(2, groups - g) - 1][smaller(6, out - o) - 1](
          in, x + g * in * 8, in * 8, weights + o * in, in, 1, bias + o, y + (g * out + o) * 8,
          out * 8);
}

void linear_input(Index groups, Index in, Index out, const float* dy, const float* weights,
                  float* dx) {
  for (Index g = 0; g < groups; g += 2)
    for (Index i = 0; i < in; i += 6)
      kLinearBlocks[smaller(2, groups - g) - 1][smaller(6, in - i) - 1](
          out, dy + g * out * 8, out * 8, weights + i, 1, in, nullptr, dx + (g * in + i) * 8,
          in * 8);
}

template <int kRows, int kVectors>
void linear_weights_block(Index groups, Index out, const float* x, Index row, const float* dy,
                          float* dw, Index dw_row, Index columns) {
  Vector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[o][v] = zero();
  for (Index g = 0; g < groups; ++g, dy += out * 8)
    for (Index lane = 0; lane < 8; ++lane, x += row) {
      Vector elements[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) elements[v] = load(x + v * 8);
#pragma GCC unroll 8
      for (int o = 0; o < kRows; ++o) {
        const Vector factor = broadcast(dy[o * 8 + lane]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[o][v] = fma(factor, elements[v], sums[o][v]);
      }
    }
#pragma GCC unroll 8
  for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      float* const to = dw + o * dw_row + v * 8;
      if (v * 8 + 8 <= columns) {
        store(to, sums[o][v]);
        continue;
      }
      float lanes[8];
      store(lanes, sums[o][v]);
      for (Index c = 0; c < columns - v * 8; ++c) to[c] = lanes[c];
    }
}

using LinearWeightsBlock = void (*)(Index, Index, const float*, Index, const float*, float*, Index,
                                    Index);
constexpr LinearWeightsBlock kLinearWeightsBlocks[3][4] = {
    {linear_weights_block<1, 1>, linear_weights_block<1, 2>, linear_weights_block<1, 3>,
     linear_weights_block<1, 4>},
    {linear_weights_block<2, 1>, linear_weights_block<2, 2>, linear_weights_block<2, 3>,
     linear_weights_block<2, 4>},
    {linear_weights_block<3, 1>, linear_weights_block<3, 2>, linear_weights_block<3, 3>,
     linear_weights_block<3, 4>}};

void linear_weights(Index groups, Index in, Index out, Index begin, Index end, const float* x,
                    Index row, const float* dy, float* dw) {
  for (Index i = begin; i < end; i += 32) {
    const Index columns = smaller(32, end - i);
    const Index vectors = (columns + 7) / 8;
    for (Index o = 0; o < out; o += 3)
      kLinearWeightsBlocks[smaller(3, out - o) - 1][vectors - 1](
          groups, out, x + i, row, dy + o * 8, dw + o * in + i, in, columns);
  }
}

void interleave(const float* rows, Index row, Index count, float* lanes) {
  Index i = 0;
  for (; i + 8 <= count; i += 8) {
    Vector square[8];
    for (Index n = 0; n < 8; ++n) square[n] = load(rows + n * row + i);
    transpose(square);
    for (Index n = 0; n < 8; ++n) store(lanes + (i + n) * 8, square[n]);
  }
  for (; i < count; ++i)
    for (Index n = 0; n < 8; ++n) lanes[i * 8 + n] = rows[n * row + i];
}

void deinterleave(const float* lanes, Index count, float* rows, Index row) {
  Index i = 0;
  for (; i + 8 <= count; i += 8) {
    Vector square[8];
    for (Index n = 0; n < 8; ++n) square[n] = load(lanes + (i + n) * 8);
    transpose(square);
    for (Index n = 0; n < 8; ++n) store(rows + n * row + i, square[n]);
  }
  for (; i < count; ++i)
    for (Index n = 0; n < 8; ++n) rows[n * row + i] = lanes[i * 8 + n];
}

constexpr LaneLoops kLoops{correlate_row, correlate_weights, relu_pool_rows, relu_unpool_rows,
                           linear_forward, linear_input, linear_weights, interleave, deinterleave};
