#include "kernels/non_finite.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels {

// An exponent of all ones, and no other, carries into the highest bit.
TROUPE_WIDE_LOOP(collect_carries, (const float* values, std::size_t n, std::uint32_t* carries),
                 (values, n, carries)) {
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < n; ++i)
    all |= (std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu) + 0x00800000u;
  *carries = all;
}

std::size_t find_non_finite(std::span<const float> values) noexcept {
  constexpr std::size_t kRun = 4096;  // long enough to be fast, short enough to search again
  for (std::size_t begin = 0; begin < values.size(); begin += kRun) {
    const auto run = values.subspan(begin, std::min(kRun, values.size() - begin));
    std::uint32_t carries = 0;
    collect_carries(run.data(), run.size(), &carries);
    if ((carries & 0x80000000u) == 0) continue;
    const auto at = std::ranges::find_if(run, [](float x) { return !std::isfinite(x); });
    return begin + static_cast<std::size_t>(at - run.begin());
  }
  return values.size();
}

}  // namespace troupe::kernels
