#pragma once

#include <cstddef>
#include <span>

#include "kernels/model.hpp"

namespace troupe::kernels {

/// Moves the running statistics towards those of a step: x = x + momentum * (sum * scale - x), for
/// the statistics that lie from `begin` on, `sums` of them with what is between; trained parameters
/// among them stay as they are. `sums` is what all ranks' passes wrote in the gradients' place,
/// added up; `scale` is 1 / global batch.
///
/// `begin` need not be a parameter's first element. Any split into runs gives the same bits.
void update_statistics(const Model& model, std::size_t begin, std::span<const float> sums,
                       float scale, std::span<float> parameters);

}  // namespace troupe::kernels
