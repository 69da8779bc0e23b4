#pragma once

#include <span>

#include "kernels/gradient.hpp"
#include "kernels/optimizer.hpp"

namespace troupe::kernels {

/// One step of a model's weights, statistics included. Pointers are the device's, and what each
/// leads to is laid out as the model's parameters.
struct UpdatePass {
  const Optimizer& optimizer;  ///< outlives what is enqueued
  UpdateFactors factors;
  /// As Optimizer::update() takes it, and behind it what update_statistics() takes. In one run,
  /// where the device is not the host.
  std::span<const GradientRun> gradient;
  float statistic_scale;  ///< as update_statistics() takes it
  float* parameters;
  std::span<float* const> state;
};

/// On the host, at once.
void update_on_host(const UpdatePass& pass);

}  // namespace troupe::kernels
