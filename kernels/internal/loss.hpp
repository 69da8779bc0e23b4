#pragma once

#include <cstdint>
#include <span>

#include "kernels/workspace.hpp"

namespace troupe::kernels {

/// Softmax cross entropy of row-major `logits` [labels.size(), classes]: the sums over samples, and
/// (unless `gradient` is empty) the gradient of the summed loss by each logit. Computed in double
/// with the same bits on every machine. The labels must be in range.
LossStats softmax_cross_entropy(std::span<const float> logits, std::int64_t classes,
                                std::span<const std::int32_t> labels, std::span<float> gradient);

}  // namespace troupe::kernels
