#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "runtime/base/check.hpp"
#include "runtime/graph/placement.hpp"

namespace troupe::graph {
namespace {

/// Of how many aligned blocks the run [begin, end) consists.
std::uint32_t aligned_blocks(std::uint64_t begin, std::uint64_t end) {
  std::uint32_t blocks = 0;
  while (begin < end) {
    std::uint64_t size = std::bit_floor(end - begin);
    if (begin != 0) size = std::min(size, std::uint64_t{1} << std::countr_zero(begin));
    begin += size;
    ++blocks;
  }
  return blocks;
}

constexpr std::uint32_t kImpossible = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::vector<std::uint32_t> share_out(std::uint32_t count, std::span<const std::uint32_t> weights) {
  const std::uint64_t total = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  TROUPE_CHECK(total > 0, "share_out without a place that has weight");
  const std::size_t places = weights.size();

  // Everybody gets the whole part of the share; those with a fraction may get one of the rest.
  std::vector<std::uint32_t> sizes(places);
  std::vector<std::uint64_t> starts(places);
  std::vector<bool> fraction(places);
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < places; ++i) {
    const std::uint64_t product = std::uint64_t{count} * weights[i];
    sizes[i] = static_cast<std::uint32_t>(product / total);
    fraction[i] = product % total != 0;
    starts[i] = given;
    given += sizes[i];
  }
  const std::size_t rest = count - given;

  // best[used]: fewest blocks from place i on, when `used` of the rest were given before it.
  std::vector<std::uint32_t> best(rest + 1, kImpossible), next;
  best[rest] = 0;
  std::vector<std::vector<bool>> extra(places, std::vector<bool>(rest + 1));
  for (std::size_t i = places; i-- > 0;) {
    next.swap(best);
    best.assign(rest + 1, kImpossible);
    for (std::size_t used = 0; used <= std::min(rest, i); ++used) {
      const std::uint64_t begin = starts[i] + used;
      if (next[used] != kImpossible)
        best[used] = aligned_blocks(begin, begin + sizes[i]) + next[used];
      if (!fraction[i] || used == rest || next[used + 1] == kImpossible) continue;
      const std::uint32_t with_extra = aligned_blocks(begin, begin + sizes[i] + 1) + next[used + 1];
      if (with_extra > best[used]) continue;
      best[used] = with_extra;
      extra[i][used] = true;
    }
  }

  std::size_t used = 0;
  for (std::size_t i = 0; i < places; ++i)
    if (extra[i][used]) {
      ++sizes[i];
      ++used;
    }
  return sizes;
}

}  // namespace troupe::graph
