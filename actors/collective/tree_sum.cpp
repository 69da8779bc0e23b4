#include "actors/collective/tree_sum.hpp"

#include <algorithm>
#include <cstring>

#include "actors/collective/sum.hpp"
#include "runtime/base/check.hpp"

namespace troupe::collective {
namespace {

/// Floats per block. What lies between is 16 KiB and never leaves the nearest cache; much shorter
/// runs of each operand would defeat the prefetcher (measured with 8 operands from memory).
constexpr std::size_t kBlock = 4096;

}  // namespace

/// Walks the tree and writes the loops down, two levels at once where the tree has them: half the
/// loads and stores of one level at a time, and the same sums.
class TreeSum::Builder {
public:
  Builder(TreeSum& sum, std::span<const RankRange> parts) : sum_(sum), parts_(parts) {}

  void build_all(RankRange whole) {
    build(whole);
    TROUPE_CHECK(next_part_ == parts_.size(), "the parts of a tree sum overlap or leave its tree");
  }

private:
  std::uint32_t build(RankRange range) {
    if (is_part(range)) return next_part_++;
    const std::uint32_t mid = Tree::split(range);
    const RankRange left{range.begin, mid};
    const RankRange right{mid, range.end};
    const bool left_is_part = is_part(left);
    // The parts are met in rank order, so the left side must be walked first.
    Step step{};
    std::size_t inputs = 0;
    const auto take = [&](RankRange r) { step.in[inputs++] = build(r); };
    const auto take_halves = [&](RankRange r) {
      const std::uint32_t half = Tree::split(r);
      take({r.begin, half});
      take({half, r.end});
    };
    left_is_part ? take(left) : take_halves(left);
    const bool right_is_part = is_part(right);
    right_is_part ? take(right) : take_halves(right);
    step.op = left_is_part ? (right_is_part ? Op::add2 : Op::add3_right)
                           : (right_is_part ? Op::add3_left : Op::add4);
    for (std::size_t i = inputs; i-- > 0;)
      if (step.in[i] >= parts_.size()) free_.push_back(step.in[i]);
    step.out = take_scratch();
    sum_.steps_.push_back(step);
    return step.out;
  }

  /// True if `range` is a part, false if it lies above several.
  bool is_part(RankRange range) const {
    const auto found = std::lower_bound(
        parts_.begin(), parts_.end(), range.begin,
        [](const RankRange& part, std::uint32_t begin) { return part.begin < begin; });
    TROUPE_CHECK(found != parts_.end() && found->begin == range.begin && found->end <= range.end,
                 "the parts of a tree sum do not tile its tree");
    return found->end == range.end;
  }

  std::uint32_t take_scratch() {
    if (free_.empty()) return static_cast<std::uint32_t>(parts_.size()) + sum_.scratch_count_++;
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }

  TreeSum& sum_;
  std::span<const RankRange> parts_;
  std::uint32_t next_part_ = 0;
  std::vector<std::uint32_t> free_;
};

TreeSum::TreeSum(RankRange whole, std::span<const RankRange> parts) : part_count_(parts.size()) {
  TROUPE_CHECK(!parts.empty(), "a tree sum of nothing");
  Builder(*this, parts).build_all(whole);
  // The last step writes to the result itself.
  scratch_.resize(std::size_t{scratch_count_} * kBlock);
}

void TreeSum::run(float* out, std::span<const float* const> operands, std::size_t count) {
  TROUPE_CHECK(operands.size() == part_count_, "a tree sum needs one operand for each part");
  if (steps_.empty()) {
    if (out != operands[0]) std::memcpy(out, operands[0], count * sizeof(float));
    return;
  }
  for (std::size_t at = 0; at < count; at += kBlock)
    run_block(out, operands, at, std::min(kBlock, count - at));
}

void TreeSum::run_block(float* out, std::span<const float* const> operands, std::size_t at,
                        std::size_t count) {
  const auto place = [&](std::uint32_t i) -> const float* {
    if (i < part_count_) return operands[i] + at;
    return scratch_.data() + (i - part_count_) * kBlock;
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    const bool last = i + 1 == steps_.size();
    float* to = last ? out + at : scratch_.data() + (s.out - part_count_) * kBlock;
    switch (s.op) {
      case Op::add2:
        add2(to, place(s.in[0]), place(s.in[1]), count);
        break;
      case Op::add3_left:
        add3_left(to, place(s.in[0]), place(s.in[1]), place(s.in[2]), count);
        break;
      case Op::add3_right:
        add3_right(to, place(s.in[0]), place(s.in[1]), place(s.in[2]), count);
        break;
      case Op::add4:
        add4(to, place(s.in[0]), place(s.in[1]), place(s.in[2]), place(s.in[3]), count);
        break;
    }
  }
}

std::vector<double> TreeSum::run(std::span<const double> operands, std::size_t width) const {
  TROUPE_CHECK(operands.size() == part_count_ * width, "a tree sum needs a row for each part");
  std::vector<double> places(operands.begin(), operands.end());
  places.resize((part_count_ + scratch_count_) * width);
  std::size_t result = 0;
  for (const Step& s : steps_) {
    for (std::size_t k = 0; k < width; ++k) {
      const auto in = [&](std::size_t i) { return places[s.in[i] * width + k]; };
      double sum = 0;
      switch (s.op) {
        case Op::add2:
          sum = in(0) + in(1);
          break;
        case Op::add3_left:
          sum = (in(0) + in(1)) + in(2);
          break;
        case Op::add3_right:
          sum = in(0) + (in(1) + in(2));
          break;
        case Op::add4:
          sum = (in(0) + in(1)) + (in(2) + in(3));
          break;
      }
      places[s.out * width + k] = sum;
    }
    result = s.out;
  }
  return {places.begin() + static_cast<std::ptrdiff_t>(result * width),
          places.begin() + static_cast<std::ptrdiff_t>((result + 1) * width)};
}

}  // namespace troupe::collective
