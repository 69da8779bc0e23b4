#include "kernels/cpu/internal/lanes.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/philox.hpp"

namespace troupe::kernels::cpu {
namespace {

/// Each loop by both versions: they must give the same bits, as ranks of one job may run on
/// different CPUs. (That they are right is what the layers' tests say.)
class Lanes : public testing::Test {
protected:
  void SetUp() override {
    if (avx2_lane_loops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2 with FMA";
  }

  std::vector<float> random(Index count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = random_.normal();
    return values;
  }
  /// Runs `body` with each version and compares what it gives.
  void expect_same(auto body) { EXPECT_EQ(body(*avx2_lane_loops()), body(generic_lane_loops())); }

  Philox random_{1};
};

using Floats = std::vector<float>;

TEST_F(Lanes, correlate_to_the_same_bits) {
  for (Index channels : {1, 2, 3, 4, 5, 6, 7, 13})
    for (Index stride : {1, 2}) {
      Correlation shape{{3, 9, 11, 0, 11}, channels, 0, 0, 3, stride, 1};
      shape.out_height = (9 + 2 - 3) / stride + 1;
      shape.out_width = (11 + 2 - 3) / stride + 1;
      shape.x.left = shape.columns_needed();
      shape.x.row = 11 + 2 * shape.x.left;
      const Floats x = random(shape.x.floats()), weights = random(channels * 27),
                   bias = random(channels);
      expect_same([&](const LaneLoops& loops) {
        const Index channel = shape.out_width * 8;
        Floats y(static_cast<std::size_t>(channels * channel));
        for (Index block = 0; block < shape.blocks(); ++block)
          loops.correlate_row(shape, block, 0, x.data(),
                              weights.data() + shape.block_begin(block) * 27,
                              bias.data() + shape.block_begin(block),
                              y.data() + shape.block_begin(block) * channel, channel);
        return y;
      });
    }
}

TEST_F(Lanes, add_up_weights_to_the_same_bits) {
  Correlation shape{{2, 8, 9, 2, 13}, 3, 8, 9, 5, 1, 2};
  const LaneImage gradient{3, 8, 9, 1, 11};
  const Floats x = random(shape.x.floats()), dy = random(gradient.floats());
  expect_same([&](const LaneLoops& loops) {
    Floats sums(3 * 2 * 25 * 8), bias(3 * 8);
    loops.correlate_weights(shape, gradient, x.data(), dy.data(), sums.data(), bias.data());
    sums.insert(sums.end(), bias.begin(), bias.end());
    return sums;
  });
}

TEST_F(Lanes, pool_and_put_back_to_the_same_bits) {
  Floats x = random(2 * 9 * 8);
  const Floats dy = random(4 * 8);
  expect_same([&](const LaneLoops& loops) {
    Floats y(4 * 8), dx(2 * 10 * 8);
    std::vector<std::uint8_t> chosen(4 * 8);
    loops.relu_pool_rows(x.data(), 9, 2, 4, y.data(), chosen.data());
    loops.relu_unpool_rows(dy.data(), chosen.data(), 9, 2, 4, dx.data(), 80);
    y.insert(y.end(), dx.begin(), dx.end());
    y.insert(y.end(), chosen.begin(), chosen.end());
    return y;
  });
}

TEST_F(Lanes, let_a_nan_through_the_pooling) {
  for (const LaneLoops* loops : {avx2_lane_loops(), &generic_lane_loops()})
    for (std::size_t place : {0u, 1u, 2u, 3u}) {
      Floats x(4 * 8, 1.0f), y(8);
      std::vector<std::uint8_t> chosen(8);
      x[place * 8 + 5] = std::numeric_limits<float>::quiet_NaN();
      loops->relu_pool_rows(x.data(), 2, 2, 1, y.data(), chosen.data());
      EXPECT_TRUE(std::isnan(y[5]));
      EXPECT_EQ(y[4], 1.0f);
    }
}

TEST_F(Lanes, multiply_to_the_same_bits) {
  for (Index in : {1, 8, 37, 70})
    for (Index out : {1, 5, 14}) {
      const Floats x = random(3 * in * 8), weights = random(out * in), bias = random(out),
                   dy = random(3 * out * 8);
      expect_same([&](const LaneLoops& loops) {
        const Index row = (in + 7) / 8 * 8;
        Floats y(static_cast<std::size_t>(3 * out * 8)), dx(static_cast<std::size_t>(3 * in * 8)),
            dw(static_cast<std::size_t>(out * in)), rows(static_cast<std::size_t>(24 * row)),
            again(static_cast<std::size_t>(in * 8));
        loops.linear_forward(3, in, out, x.data(), weights.data(), bias.data(), y.data());
        loops.linear_input(3, in, out, dy.data(), weights.data(), dx.data());
        for (Index g = 0; g < 3; ++g)
          loops.deinterleave(x.data() + g * in * 8, in, rows.data() + g * 8 * row, row);
        loops.linear_weights(3, in, out, 0, in, rows.data(), row, dy.data(), dw.data());
        loops.interleave(rows.data(), row, in, again.data());
        EXPECT_TRUE(std::equal(again.begin(), again.end(), x.begin()));
        for (const Floats* more : {&dx, &dw, &rows}) y.insert(y.end(), more->begin(), more->end());
        return y;
      });
    }
}

}  // namespace
}  // namespace troupe::kernels::cpu
