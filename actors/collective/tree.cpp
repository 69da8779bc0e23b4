#include "actors/collective/tree.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/check.hpp"

namespace troupe::collective {
namespace {

/// How many of `ranks` lie in `range`.
std::size_t count_inside(std::span<const std::uint32_t> ranks, RankRange range) {
  const auto first = std::lower_bound(ranks.begin(), ranks.end(), range.begin);
  const auto last = std::lower_bound(first, ranks.end(), range.end);
  return static_cast<std::size_t>(last - first);
}

void cover_into(std::span<const std::uint32_t> ranks, RankRange range,
                std::vector<RankRange>& out) {
  const std::size_t inside = count_inside(ranks, range);
  if (inside == 0) return;
  if (inside == range.size()) {
    out.push_back(range);
    return;
  }
  const std::uint32_t mid = Tree::split(range);
  cover_into(ranks, {range.begin, mid}, out);
  cover_into(ranks, {mid, range.end}, out);
}

}  // namespace

Tree::Tree(std::uint32_t ranks) : ranks_(ranks) {
  TROUPE_CHECK(ranks >= 1, "a reduction tree over no ranks");
}

std::uint32_t Tree::split(RankRange range) {
  TROUPE_CHECK(range.begin < range.end && range.size() >= 2, "only two ranks or more can be split");
  return range.begin + std::bit_floor(range.size() - 1);
}

bool Tree::contains(RankRange range) const {
  if (range.begin >= range.end || range.end > ranks_) return false;
  RankRange at = root();
  while (at != range) {
    if (at.size() < 2) return false;
    const std::uint32_t mid = split(at);
    if (range.end <= mid)
      at.end = mid;
    else if (range.begin >= mid)
      at.begin = mid;
    else
      return false;
  }
  return true;
}

std::vector<RankRange> Tree::cover(std::span<const std::uint32_t> ranks) const {
  std::vector<RankRange> out;
  cover_into(ranks, root(), out);
  return out;
}

}  // namespace troupe::collective
