#pragma once

#include <memory>

#include "kernels/optimizer.hpp"

namespace troupe::kernels::optimizers {

// Options are valid.
std::unique_ptr<Optimizer> sgd(const OptimizerOptions& options, const Model& model);
std::unique_ptr<Optimizer> adam(const OptimizerOptions& options, const Model& model);
std::unique_ptr<Optimizer> adamw(const OptimizerOptions& options, const Model& model);
std::unique_ptr<Optimizer> lamb(const OptimizerOptions& options, const Model& model);
std::unique_ptr<Optimizer> lars(const OptimizerOptions& options, const Model& model);

}  // namespace troupe::kernels::optimizers
