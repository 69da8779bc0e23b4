#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, per channel.
///
/// In training mean and (biased) variance are of the pass's own batch over [batch, height, width],
/// or of the batches of all ranks if it is synchronized; at inference they are the running ones.
/// Ioffe, Szegedy, "Batch normalization" (2015).
/// Parameters `NAME.weight`, `NAME.bias`, `NAME.running_mean`, `NAME.running_var`, all [channels].
struct BatchNorm {
  std::string name;
  float epsilon = 1e-5f;
  /// Share of the newest batch in the running statistics, whose variance is the unbiased one.
  float momentum = 0.1f;
  float initial_weight = 1.0f;
  /// Whether all ranks' samples count as one batch: PyTorch's SyncBatchNorm. Passes then need
  /// StepOptions::sum_over_ranks.
  bool synchronized = false;

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
