#include "kernels/internal/square_sum.hpp"

#include <algorithm>

#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels {

// `n` is a multiple of 8; the lanes are named so that the compiler keeps them in registers.
TROUPE_WIDE_LOOP(add_squares, (double* lanes, const float* values, std::size_t n),
                 (lanes, values, n)) {
  double sums[8];
  for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] = lanes[lane];
  for (std::size_t i = 0; i < n; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] = sums[lane];
}

void SquareSum::add(std::span<const float> values) {
  const auto add_one = [this](float x) {
    const double value = static_cast<double>(x);
    lanes_[in_block_++ % kLanes] += value * value;
  };
  while (!values.empty()) {
    auto part = values.first(std::min(values.size(), kBlock - in_block_));
    values = values.subspan(part.size());
    while (!part.empty() && in_block_ % kLanes != 0) {
      add_one(part.front());
      part = part.subspan(1);
    }
    const std::size_t wide = part.size() / kLanes * kLanes;
    add_squares(lanes_.data(), part.data(), wide);
    in_block_ += wide;
    for (const float x : part.subspan(wide)) add_one(x);
    if (in_block_ == kBlock) close_block();
  }
}

double SquareSum::block() const {
  return ((lanes_[0] + lanes_[1]) + (lanes_[2] + lanes_[3])) +
         ((lanes_[4] + lanes_[5]) + (lanes_[6] + lanes_[7]));
}

void SquareSum::close_block() {
  double sum = block();
  std::size_t level = 0;
  for (; (blocks_ >> level & 1) != 0; ++level) sum = levels_[level] + sum;
  levels_[level] = sum;
  ++blocks_;
  lanes_ = {};
  in_block_ = 0;
}

double SquareSum::total() const {
  double sum = block();
  for (std::size_t level = 0; blocks_ >> level != 0; ++level)
    if ((blocks_ >> level & 1) != 0) sum = levels_[level] + sum;
  return sum;
}

}  // namespace troupe::kernels
