#pragma once

#include <functional>
#include <vector>

#include "tests/kernels/cuda/stand_in/stand_in.hpp"

namespace troupe::stand_in {

/// Whether operations go together: their sizes, products of factors of one 16-bit type whose rows
/// are whole runs of 8, and no virtual tensor that is read before it is written.
bool fits(const std::vector<GraphOperation>& graph);

/// Computes operations one after the other, in plain loops. `address` gives a tensor's data, null
/// for one that has none: false is returned then.
bool run(const std::vector<GraphOperation>& graph,
         const std::function<void*(const Tensor&)>& address);

}  // namespace troupe::stand_in
