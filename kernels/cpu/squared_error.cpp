#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/dnnl_support.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/wide_loop.hpp"
#include "kernels/internal/wide_math.hpp"
#include "kernels/internal/wide_rows.hpp"

namespace troupe::kernels::cpu {

// The sum of (y - t)^2 in `sum`, and unless it is null the `gradient`, `factor` (y - t).
TROUPE_WIDE_LOOP(squared_errors,
                 (const float* y, const float* t, std::size_t n, float factor, float* gradient,
                  double& sum),
                 (y, t, n, factor, gradient, sum)) {
  // Sums of so many squares are in float, which are then added in double.
  constexpr std::size_t kBlock = 512;
  float difference[kBlock];
  sum = 0.0;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t count = std::min(kBlock, n - begin);
    TROUPE_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) difference[i] = y[begin + i] - t[begin + i];
    sum += static_cast<double>(wide::dot(difference, difference, count));
    if (gradient == nullptr) continue;
    TROUPE_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) gradient[begin + i] = factor * difference[i];
  }
}

LossStats mean_squared_error(std::span<const float> outputs, std::span<const float> targets,
                             std::size_t labels, std::span<float> gradient, int threads) {
  const std::size_t width = outputs.size() / labels;
  const auto factor = static_cast<float>(2.0 / static_cast<double>(width));
  std::vector<double> sums(labels);
  const OpenMpThreads scope(threads);
  parallel_each(threads, labels, [&](std::size_t i, std::size_t) {
    squared_errors(outputs.data() + i * width, targets.data() + i * width, width, factor,
                   gradient.empty() ? nullptr : gradient.data() + i * width, sums[i]);
  });
  LossStats stats;
  for (const double sum : sums) stats.loss_sum += sum / static_cast<double>(width);
  stats.count = static_cast<std::int64_t>(labels);
  return stats;
}

}  // namespace troupe::kernels::cpu
