#pragma once

#include "tests/kernels/cuda/stand_in/stand_in.hpp"

namespace troupe::stand_in {

/// Whether the sizes of a convolution's tensors and windows go together, and cuDNN has engines for
/// their types and layouts: f32 throughout, or factors of 16 bits with all channels last, whole
/// runs of 8 of them, no groups, and a result that is a virtual tensor of f32 which is copied.
bool fits(const ConvolutionPlanned& planned);

/// Computes what the descriptors say, in plain loops: of `x`, `weight` and `y` the one that the
/// operation gives is overwritten.
void convolve(const ConvolutionPlanned& planned, void* x, void* weight, void* y);

}  // namespace troupe::stand_in
