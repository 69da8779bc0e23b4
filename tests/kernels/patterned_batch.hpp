#pragma once

#include <cstdint>

#include "kernels/model.hpp"
#include "kernels/tensor.hpp"

namespace troupe::kernels {

struct Batch {
  Tensor samples;  ///< u8, or token ids below 50
  Tensor labels;   ///< i32, below 10
};

/// A batch for any model, always the same.
Batch patterned_batch(const Model& model, std::int64_t count);

}  // namespace troupe::kernels
