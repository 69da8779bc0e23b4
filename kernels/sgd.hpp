#pragma once

#include <span>

#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Stochastic gradient descent's choices; names and meaning as torch.optim.SGD.
struct SgdOptions {
  float momentum = 0.9f;
  float weight_decay = 0.0f;
  bool nesterov = false;

  /// Errors: `invalid_argument` naming the field.
  Status validate() const;
};

/// One update of a run of parameters, in place:
///
///     g   = gradients * gradient_scale + weight_decay * parameters
///     buf = momentum * buf + g
///     parameters -= learning_rate * (nesterov ? g + momentum * buf : buf)
///
/// `gradient_scale` is 1 / global batch, as gradients are of the sum over samples. The momentum
/// starts as zeros, which gives the same first step as PyTorch. Each element is computed by itself,
/// so any split of the run into calls gives the same bits. The spans have one length, or it aborts.
/// Threads: any, on runs of their own.
void sgd_step(const SgdOptions& options, float learning_rate, float gradient_scale,
              std::span<float> parameters, std::span<float> momentum,
              std::span<const float> gradients);

}  // namespace troupe::kernels
