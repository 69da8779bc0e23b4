#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernels/model.hpp"

namespace troupe::train {

/// Something of a step's gradient or loss that is no finite number. Trainer -> reducer of its node,
/// before the rank's extra values; reducer -> job, if the step was skipped over it.
struct NonFinite {
  static constexpr std::uint32_t kSum = UINT32_MAX;

  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t rank = kSum;  ///< whose it is; kSum: all are finite, but not their sum
  std::string where = {};     ///< the parameter, "conv1.weight"; empty: the loss
  bool nan = false;           ///< not a number; otherwise infinite
};

template <class Inspector>
auto inspect(Inspector& f, NonFinite& x) {
  return f(x.generation, x.step, x.rank, x.where, x.nan);
}

/// Where a run of a flat gradient, from `begin` on, is not finite: in the last parameter that has
/// such an element, to which backward came first. Only `where` and `nan` are set.
std::optional<NonFinite> find_non_finite(const kernels::Model& model, std::uint64_t begin,
                                         std::span<const float> gradient);

/// "the gradient of rank 3 is NaN in conv1.weight".
std::string describe(const NonFinite& x);

}  // namespace troupe::train
