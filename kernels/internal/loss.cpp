#include "kernels/internal/loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

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

}  // namespace

LossStats softmax_cross_entropy(std::span<const float> logits, std::int64_t classes,
                                std::span<const std::int32_t> labels, std::span<float> gradient) {
  const auto width = static_cast<std::size_t>(classes);
  LossStats stats;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const auto row = logits.subspan(sample * width, width);
    const auto label = static_cast<std::size_t>(labels[sample]);
    const std::size_t best = greatest(row);
    // Shifted by the maximum, so that nothing overflows.
    const auto shift = static_cast<double>(row[best]);
    // The exponentials wait in the gradient's place for their sum.
    const auto out = gradient.empty() ? gradient : gradient.subspan(sample * width, width);
    double sum = 0.0;
    for (std::size_t i = 0; i < width; ++i) {
      const double power = portable_exp(static_cast<double>(row[i]) - shift);
      sum += power;
      if (!out.empty()) out[i] = static_cast<float>(power);
    }
    stats.loss_sum += portable_log(sum) + shift - static_cast<double>(row[label]);
    stats.correct += best == label && !std::isnan(shift) ? 1 : 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double probability = static_cast<double>(out[i]) / sum;
      out[i] = static_cast<float>(probability - (i == label ? 1.0 : 0.0));
    }
  }
  stats.count = static_cast<std::int64_t>(labels.size());
  return stats;
}

}  // namespace troupe::kernels
