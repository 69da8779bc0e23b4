#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/model.hpp"

namespace troupe::kernels {

/// The output of a model in training by definition: loops in double, straight from each layer's
/// formula. Slow, and right. `parameters` are laid out as the model says, `input` and the result
/// row-major.
std::vector<double> reference_forward(const Model& model, std::int64_t batch,
                                      std::span<const double> parameters,
                                      std::span<const double> input);

}  // namespace troupe::kernels
