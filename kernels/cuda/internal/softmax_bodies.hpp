#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/cuda/internal/group.hpp"
#include "kernels/host_device.hpp"
#include "kernels/internal/portable_functions.hpp"
#include "kernels/internal/wide_math.hpp"

// Softmax in attention, and losses.
namespace troupe::kernels::cuda {

/// Scores of queries and keys, [rows, tokens]: row r is that of token r % tokens of some head.
struct ScoreRows {
  std::size_t tokens;
  bool causal;  ///< a token attends to itself and those before it only

  TROUPE_HOST_DEVICE std::size_t attended(std::size_t row) const {
    return causal ? row % tokens + 1 : tokens;
  }
};

/// Scores become probabilities, those of keys that are not attended to zero; `log_sums` gets for
/// each row the logarithm of the sum of e^score.
struct SoftmaxForward {
  ScoreRows rows;
  float* scores;
  float* log_sums;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t row) const {
    float* const x = scores + row * rows.tokens;
    const std::size_t n = rows.attended(row);
    const float greatest = group.greatest(x, n);
    group.each(rows.tokens,
               [&](std::size_t i) { x[i] = i < n ? wide::exp(x[i] - greatest) : 0.0f; });
    const float sum = group.sum(n, [&](std::size_t i) { return x[i]; });
    const float factor = 1.0f / sum;  // by which a NaN goes on
    group.each(n, [&](std::size_t i) { x[i] *= factor; });
    group.once([&] {
      const double log_sum = sum >= 1.0f ? portable::log(static_cast<double>(sum)) : 0.0;
      log_sums[row] = greatest + static_cast<float>(log_sum);
    });
  }
};

/// Scores become the probabilities that they became before.
struct SoftmaxAgain {
  ScoreRows rows;
  float* scores;
  const float* log_sums;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t row = i / rows.tokens, key = i % rows.tokens;
    scores[i] = key < rows.attended(row) ? wide::exp(scores[i] - log_sums[row]) : 0.0f;
  }
};

/// The probabilities' gradients become the scores', times `scale`: of a row of the softmax p,
/// dx = p (dp - sum of p dp).
struct SoftmaxBackward {
  ScoreRows rows;
  const float* probabilities;
  float* gradients;
  float scale;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t row) const {
    const float* const p = probabilities + row * rows.tokens;
    float* const g = gradients + row * rows.tokens;
    // Beyond what is attended to p is zero.
    const float sum = group.sum(rows.attended(row), [&](std::size_t i) { return p[i] * g[i]; });
    group.each(rows.tokens, [&](std::size_t i) { g[i] = p[i] * (g[i] - sum) * scale; });
  }
};

/// What comes of one row of logits.
struct RowLoss {
  double loss;
  std::int32_t correct;
  std::int32_t counts;  ///< 0 for the ignored label
};

/// The logits of a batch, [rows, classes].
struct LossRows {
  std::size_t classes;
  const float* logits;
  const std::int32_t* labels;
  bool ignores;  ///< whether there is a label whose rows count for nothing
  std::int32_t ignored_label;
  float smoothing;
  float* gradient;  ///< or null
  RowLoss* losses;
};

/// Softmax cross entropy of a row of few classes, in double: in the order of the CPU's.
struct SmallLoss {
  LossRows rows;
  TROUPE_HOST_DEVICE void operator()(std::size_t row) const {
    const std::size_t n = rows.classes;
    const float* const x = rows.logits + row * n;
    float* const out = rows.gradient == nullptr ? nullptr : rows.gradient + row * n;
    if (rows.ignores && rows.labels[row] == rows.ignored_label) {
      for (std::size_t i = 0; out != nullptr && i < n; ++i) out[i] = 0.0f;
      rows.losses[row] = {0.0, 0, 0};
      return;
    }
    const auto label = static_cast<std::size_t>(rows.labels[row]);
    // The first of equals; a NaN, if there is one, wins.
    std::size_t best = 0;
    for (std::size_t i = 1; i < n; ++i)
      if (x[i] > x[best] || (x[i] != x[i] && x[best] == x[best])) best = i;
    const auto shift = static_cast<double>(x[best]);
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      const double power = portable::exp(static_cast<double>(x[i]) - shift);
      sum += power;
      if (out != nullptr) out[i] = static_cast<float>(power);
    }
    const auto smoothing = static_cast<double>(rows.smoothing);
    const double share = smoothing / static_cast<double>(n);
    auto target = static_cast<double>(x[label]);
    if (smoothing > 0.0) {
      target *= 1.0 - smoothing;
      for (std::size_t i = 0; i < n; ++i) target += share * static_cast<double>(x[i]);
    }
    rows.losses[row] = {portable::log(sum) + shift - target, best == label && shift == shift, 1};
    for (std::size_t i = 0; out != nullptr && i < n; ++i) {
      const double probability = static_cast<double>(out[i]) / sum;
      out[i] = static_cast<float>(probability - ((i == label ? 1.0 - smoothing : 0.0) + share));
    }
  }
};

/// The same of many classes: exponentials in float, their sum in double.
struct WideLoss {
  LossRows rows;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t row) const {
    const std::size_t n = rows.classes;
    const float* const x = rows.logits + row * n;
    float* const out = rows.gradient == nullptr ? nullptr : rows.gradient + row * n;
    if (rows.ignores && rows.labels[row] == rows.ignored_label) {
      if (out != nullptr) group.each(n, [&](std::size_t i) { out[i] = 0.0f; });
      group.once([&] { rows.losses[row] = {0.0, 0, 0}; });
      return;
    }
    const auto label = static_cast<std::size_t>(rows.labels[row]);
    const float greatest = group.greatest(x, n);
    const double powers = group.sum(
        n, [&](std::size_t i) { return static_cast<double>(wide::exp(x[i] - greatest)); });
    const auto smoothing = static_cast<double>(rows.smoothing);
    const double share = smoothing / static_cast<double>(n);
    double target = (1.0 - smoothing) * static_cast<double>(x[label]);
    if (smoothing > 0.0)
      target += share * group.sum(n, [&](std::size_t i) { return static_cast<double>(x[i]); });
    // The first of equals counts.
    const double before =
        group.sum(label, [&](std::size_t i) { return x[i] == greatest ? 1.0 : 0.0; });
    group.once([&] {
      // A NaN anywhere is one in the sum, whose logarithm would be taken of its bits.
      const bool is_number = powers >= 1.0;
      const double loss = is_number ? portable::log(powers) + static_cast<double>(greatest) - target
                                    : std::numeric_limits<double>::quiet_NaN();
      rows.losses[row] = {loss, is_number && x[label] == greatest && before == 0.0, 1};
    });
    if (out == nullptr) return;
    const auto factor = static_cast<float>(1.0 / powers);
    const auto part = static_cast<float>(share);
    group.each(n, [&](std::size_t i) {
      const float value = wide::exp(x[i] - greatest) * factor - part;
      out[i] = i == label ? value - (1.0f - rows.smoothing) : value;
    });
  }
};

/// The rows' results in their order, to what LossStats holds. One lane does it: the order is the
/// result, and the rows are few.
struct LossTotal {
  const RowLoss* losses;
  std::size_t rows;
  double* loss_sum;
  std::int64_t* correct;
  std::int64_t* count;
  TROUPE_HOST_DEVICE void operator()(std::size_t) const {
    double sum = 0.0;
    std::int64_t right = 0, counted = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      if (losses[row].counts == 0) continue;
      sum += losses[row].loss;
      right += losses[row].correct;
      ++counted;
    }
    *loss_sum = sum;
    *correct = right;
    *count = counted;
  }
};

/// Mean squared error of a label's outputs, [width]: the sum in double.
struct SquaredErrors {
  std::size_t width;
  const float* outputs;
  const float* targets;
  float* gradient;  ///< or null
  RowLoss* losses;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t row) const {
    const float* const y = outputs + row * width;
    const float* const t = targets + row * width;
    const auto n = static_cast<double>(width);
    const double sum = group.sum(width, [&](std::size_t i) {
      const auto difference = static_cast<double>(y[i] - t[i]);
      return difference * difference;
    });
    const auto factor = static_cast<float>(2.0 / n);
    if (gradient != nullptr)
      group.each(width, [&](std::size_t i) { gradient[row * width + i] = factor * (y[i] - t[i]); });
    group.once([&] { losses[row] = {sum / n, 0, 1}; });
  }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_SOFTMAX_ELEMENT_BODIES(each)                                        \
  each(troupe::kernels::cuda::SoftmaxAgain) each(troupe::kernels::cuda::SmallLoss) \
      each(troupe::kernels::cuda::LossTotal)
#define TROUPE_SOFTMAX_ROW_BODIES(each)                                                    \
  each(troupe::kernels::cuda::SoftmaxForward) each(troupe::kernels::cuda::SoftmaxBackward) \
      each(troupe::kernels::cuda::WideLoss) each(troupe::kernels::cuda::SquaredErrors)
