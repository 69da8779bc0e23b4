#pragma once

#include <cstdint>
#include <vector>

#include "kernels/internal/network.hpp"
#include "kernels/layer.hpp"
#include "kernels/shape.hpp"

namespace troupe::kernels {

/// How far a float kernel may be from the formula in double: for n terms of size about 1 that are
/// added one after the other, rounding gives some 2^-24 * n in the worst case; this holds up to a
/// few hundred terms. Relative to 1 or the expected value, whichever is greater.
inline constexpr double kForwardTolerance = 2e-5;
/// The same for gradients, which add up over a batch and over positions.
inline constexpr double kGradientTolerance = 5e-5;

/// What a gradient check tries.
struct LayersUnderTest {
  Shape input;  ///< of one sample
  std::vector<LayerSpec> layers;
  std::int64_t batch = 3;
  KernelChoice choice = KernelChoice::automatic;
  int threads = 1;
  std::uint64_t seed = 1;
};

/// Runs `layers` on random samples with random parameters and expects (GoogleTest)
/// - that the output is what the layers' formulas say, and
/// - that the gradients by the parameters and input elements (of large tensors, a hundred each)
/// of
///   a random linear function of the output are its central differences, which are taken in double
///   of the formulas.
/// Every layer and every kernel of it is tested by this one check.
void check_gradients(const LayersUnderTest& test);
/// The same for a model whose layers branch and join, on `test.batch` and the rest of `test`.
void check_gradients(const Model& model, const LayersUnderTest& test);

}  // namespace troupe::kernels
