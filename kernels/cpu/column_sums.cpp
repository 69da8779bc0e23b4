#include "kernels/cpu/internal/column_sums.hpp"

#include <algorithm>

#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::cpu {

TROUPE_WIDE_LOOP(add_rows,
                 (const float* rows, std::size_t count, std::size_t width, std::size_t n,
                  float* sums),
                 (rows, count, width, n, sums)) {
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t i = 0; i < n; ++i) sums[i] += rows[r * width + i];
}

void column_sums(const float* rows, std::size_t count, std::size_t width, float* sums, bool add,
                 int threads) {
  // Columns whose sums stay in the first-level cache.
  constexpr std::size_t kStrip = 1024;
  // Floats that are not worth a thread.
  constexpr std::size_t kLeast = 1 << 14;
  const std::size_t least = std::max<std::size_t>(16, kLeast / std::max<std::size_t>(count, 1));
  parallel_for(threads, width, least, [&](std::size_t begin, std::size_t end) {
    if (!add) std::fill(sums + begin, sums + end, 0.0f);
    for (std::size_t at = begin; at < end; at += kStrip)
      add_rows(rows + at, count, width, std::min(kStrip, end - at), sums + at);
  });
}

}  // namespace troupe::kernels::cpu
