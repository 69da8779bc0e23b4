#pragma once

#include "tests/kernels/cuda/stand_in/stand_in.hpp"

namespace troupe::stand_in {

/// Whether the sizes of a convolution's tensors and windows go together.
bool fits(const ConvolutionPlanned& planned);

/// Computes what the descriptors say, in plain loops: of `x`, `weight` and `y` the one that the
/// operation gives is overwritten.
void convolve(const ConvolutionPlanned& planned, float* x, float* weight, float* y);

}  // namespace troupe::stand_in
