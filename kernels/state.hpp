#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/parameters.hpp"
#include "kernels/tensor.hpp"

namespace troupe::kernels {

/// One named tensor of what a checkpoint holds. `tensor` is a view: reading or writing it reads or
/// writes the parameters that it came from.
struct StateEntry {
  std::string name;
  Tensor tensor;
};

/// The parameters as named tensors, in the model's order: "conv1.weight", ...
std::vector<StateEntry> state_of(const Parameters& parameters);

/// The same for a buffer of optimizer state: each name after `prefix`, say
/// "optimizer.momentum.conv1.weight" for "optimizer.momentum.".
std::vector<StateEntry> state_of(const Parameters& parameters, std::string_view prefix);

}  // namespace troupe::kernels
