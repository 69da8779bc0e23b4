#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/dnnl_support.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/portable_math.hpp"
#include "kernels/internal/wide_loop.hpp"
#include "kernels/internal/wide_math.hpp"
#include "kernels/internal/wide_rows.hpp"

namespace troupe::kernels::cpu {

namespace {

/// A row of logits, and what comes of it.
struct Row {
  const float* logits;
  std::size_t width;
  std::size_t label;
  float smoothing;
  float* gradient;  ///< or null
  double loss;
  bool correct;
};

}  // namespace

TROUPE_WIDE_LOOP(cross_entropy_of, (Row & row), (row)) {
  // Sums of so many exponentials are in float, which are then added in double.
  constexpr std::size_t kBlock = 512;
  const float* const x = row.logits;
  const std::size_t n = row.width;
  const float greatest = wide::greatest(x, n);
  float block[kBlock];
  double powers = 0.0, logits = 0.0;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t count = std::min(kBlock, n - begin);
    float* const to = row.gradient == nullptr ? block : row.gradient + begin;
    TROUPE_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) to[i] = wide::exp(x[begin + i] - greatest);
    powers += static_cast<double>(wide::sum(to, count));
    if (row.smoothing > 0.0f) logits += static_cast<double>(wide::sum(x + begin, count));
  }
  const auto smoothing = static_cast<double>(row.smoothing);
  const double share = smoothing / static_cast<double>(n);
  const double target = (1.0 - smoothing) * static_cast<double>(x[row.label]) + share * logits;
  // A NaN anywhere is one in the sum, whose logarithm would be taken of its bits.
  row.loss = powers >= 1.0 ? portable_log(powers) + static_cast<double>(greatest) - target
                           : std::numeric_limits<double>::quiet_NaN();
  // The first of equals counts.
  std::size_t before = 0;
  for (std::size_t i = 0; i < row.label; ++i) before += x[i] == greatest ? 1 : 0;
  row.correct = x[row.label] == greatest && before == 0 && powers >= 1.0;
  if (row.gradient == nullptr) return;
  const auto factor = static_cast<float>(1.0 / powers);
  const auto part = static_cast<float>(share);
  float* const out = row.gradient;
  TROUPE_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) out[i] = out[i] * factor - part;
  out[row.label] -= 1.0f - row.smoothing;
}

LossStats softmax_cross_entropy(std::span<const float> logits, std::int64_t classes,
                                std::span<const std::int32_t> labels, std::span<float> gradient,
                                const LossOptions& options) {
  const auto width = static_cast<std::size_t>(classes);
  std::vector<Row> rows(labels.size());
  const OpenMpThreads scope(options.threads);
  parallel_each(options.threads, rows.size(), [&](std::size_t i, std::size_t) {
    float* const out = gradient.empty() ? nullptr : gradient.data() + i * width;
    if (labels[i] == options.ignored_label) {
      if (out != nullptr) std::fill(out, out + width, 0.0f);
      return;
    }
    rows[i] = {logits.data() + i * width,
               width,
               static_cast<std::size_t>(labels[i]),
               options.label_smoothing,
               out,
               0.0,
               false};
    cross_entropy_of(rows[i]);
  });
  LossStats stats;
  for (const Row& row : rows) {
    if (row.logits == nullptr) continue;
    stats.loss_sum += row.loss;
    stats.correct += row.correct ? 1 : 0;
    ++stats.count;
  }
  return stats;
}

}  // namespace troupe::kernels::cpu
