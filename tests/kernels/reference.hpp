#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/custom_layer.hpp"
#include "kernels/model.hpp"

namespace troupe::kernels {

/// A layer of the user's with its formula in double, so that reference_forward() knows it.
class ReferenceLayer : public CustomLayer {
public:
  virtual void reference(std::int64_t batch, std::span<const std::vector<double>* const> inputs,
                         std::span<const double* const> parameters,
                         std::vector<double>& output) const = 0;
};

/// The output of a model in training by definition: loops in double, straight from each layer's
/// formula. Slow, and right. `parameters` are laid out as the model says, `input` and the result
/// row-major.
std::vector<double> reference_forward(const Model& model, std::int64_t batch,
                                      std::span<const double> parameters,
                                      std::span<const double> input);

}  // namespace troupe::kernels
