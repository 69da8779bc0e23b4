#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "kernels/model.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Replaces each value by its sum over all ranks, the same bits on each. Every rank's pass calls it
/// equally often, with as many values, and none goes on before all have. An error ends the pass.
using SumOverRanks = std::function<Status(std::span<double> values)>;

/// What a step of a model asks of SumOverRanks.
struct RankSums {
  std::size_t calls = 0;   ///< in one forward_backward()
  std::size_t widest = 0;  ///< values of the longest
};

/// Two calls for each synchronized batch norm: before its forward pass, and before its backward
/// one.
RankSums rank_sums(const Model& model);

}  // namespace troupe::kernels
