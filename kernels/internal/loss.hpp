#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/workspace.hpp"

namespace troupe::kernels {

struct LossOptions {
  /// What each label gives away, in equal parts to all classes: 0 to below 1.
  float label_smoothing = 0.0f;
  std::optional<std::int32_t> ignored_label = {};
  int threads = 1;  ///< not part of the result
};

/// From so many classes on the exponentials are taken in float: a sum of them is within 1e-6 of the
/// one in double, relatively.
inline constexpr std::int64_t kManyClasses = 128;

/// Softmax cross entropy of row-major `logits` [labels.size(), classes]: the sums over samples, and
/// (unless `gradient` is empty) the gradient of the summed loss by each logit. The same bits on
/// every machine. The labels must be in range or the ignored one, whose samples count for nothing.
LossStats softmax_cross_entropy(std::span<const float> logits, std::int64_t classes,
                                std::span<const std::int32_t> labels, std::span<float> gradient,
                                const LossOptions& options = {});

}  // namespace troupe::kernels
