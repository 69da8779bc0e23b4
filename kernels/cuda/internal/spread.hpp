#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/cuda/internal/group.hpp"
#include "kernels/host_device.hpp"

namespace troupe::kernels::cuda {

/// What a norm divides elements by, and what it takes from them first.
struct Spread {
  float mean, variance, inverse;  ///< of the deviation: 1 / sqrt(variance + epsilon)

  /// Of x(i) for i < n, around their mean, or around 0 if they are not to be centered. The variance
  /// is the biased one.
  template <class X>
  TROUPE_HOST_DEVICE static Spread of(Group& group, std::size_t n, float epsilon, bool centered,
                                      const X& x) {
    const float count = static_cast<float>(n);
    const float mean = centered ? group.sum(n, x) / count : 0.0f;
    const float variance = group.sum(n, [&](std::size_t i) {
      const float distance = x(i) - mean;
      return distance * distance;
    }) / count;
    return {mean, variance, 1.0f / std::sqrt(variance + epsilon)};
  }
};

}  // namespace troupe::kernels::cuda
