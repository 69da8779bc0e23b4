#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// y = W x + b. Parameters `NAME.weight` [out, in] and `NAME.bias` [out].
struct Linear {
  std::string name;
  std::int64_t out_features = 1;
  bool bias = true;
  std::optional<Initial> initial = {};  ///< of the weight; else by fan-in

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
