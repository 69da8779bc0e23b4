#include "kernels/internal/loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/internal/portable_math.hpp"

namespace troupe::kernels {

namespace {

/// Where the greatest logit is: the first of equals; a NaN, if there is one, wins.
std::size_t greatest(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best] || (std::isnan(logits[i]) && !std::isnan(logits[best]))) best = i;
  return best;
}

/// One sample; the exponentials wait in the gradient's place for their sum.
void add_row(std::span<const float> row, std::size_t label, double smoothing, std::span<float> out,
             LossStats& stats) {
  const std::size_t best = greatest(row);
  // Shifted by the maximum, so that nothing overflows.
  const auto shift = static_cast<double>(row[best]);
  double sum = 0.0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double power = portable_exp(static_cast<double>(row[i]) - shift);
    sum += power;
    if (!out.empty()) out[i] = static_cast<float>(power);
  }
  double target = static_cast<double>(row[label]);
  const double share = smoothing / static_cast<double>(row.size());
  if (smoothing > 0.0) {
    target *= 1.0 - smoothing;
    for (const float logit : row) target += share * static_cast<double>(logit);
  }
  stats.loss_sum += portable_log(sum) + shift - target;
  stats.correct += best == label && !std::isnan(shift) ? 1 : 0;
  ++stats.count;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double probability = static_cast<double>(out[i]) / sum;
    out[i] = static_cast<float>(probability - ((i == label ? 1.0 - smoothing : 0.0) + share));
  }
}

}  // namespace

LossStats softmax_cross_entropy(std::span<const float> logits, std::int64_t classes,
                                std::span<const std::int32_t> labels, std::span<float> gradient,
                                const LossOptions& options) {
  if (classes >= kManyClasses)
    return cpu::softmax_cross_entropy(logits, classes, labels, gradient, options);
  const auto width = static_cast<std::size_t>(classes);
  LossStats stats;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const auto out = gradient.empty() ? gradient : gradient.subspan(sample * width, width);
    if (labels[sample] == options.ignored_label) {
      std::ranges::fill(out, 0.0f);
      continue;
    }
    add_row(logits.subspan(sample * width, width), static_cast<std::size_t>(labels[sample]),
            static_cast<double>(options.label_smoothing), out, stats);
  }
  return stats;
}

}  // namespace troupe::kernels
