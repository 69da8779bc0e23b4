#pragma once

#include <cstddef>

#include "kernels/cpu/internal/channel_runs.hpp"

namespace troupe::kernels::cpu {

/// What becomes of a channel's values x: y = (x - mean) * scale + shift, and 0 where that is below
/// if there is a ReLU behind. One for each channel of a run.
struct ChannelCoefficients {
  float mean[kMostChannelsInRun] = {};
  float scale[kMostChannelsInRun] = {};
  float shift[kMostChannelsInRun] = {};
  bool relu = false;
};

/// And of the gradients dy (0 where the ReLU was shut): dx = scale (dy - mean_dy) - (x - mean)
/// slope.
struct GradientCoefficients {
  float mean_dy[kMostChannelsInRun] = {};
  float slope[kMostChannelsInRun] = {};
};

// Each goes through run `i` of all images, in one order of additions on every machine. Pointers are
// those of whole activations; of the results, padding included.

/// The sums of x and of x^2, one of each for each channel of the run.
void run_sums(const ChannelRuns& runs, std::size_t i, const float* x, double* sums,
              double* squares);
void normalize_run(const ChannelRuns& runs, std::size_t i, const float* x,
                   const ChannelCoefficients& channels, float* y);
/// The sums of dy and of dy (x - mean).
void run_gradient_sums(const ChannelRuns& runs, std::size_t i, const float* x, const float* dy,
                       const ChannelCoefficients& channels, double* sums, double* products);
void run_gradient(const ChannelRuns& runs, std::size_t i, const float* x, const float* dy,
                  const ChannelCoefficients& channels, const GradientCoefficients& gradients,
                  float* dx);

}  // namespace troupe::kernels::cpu
