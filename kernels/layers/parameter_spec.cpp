#include "kernels/layers/parameter_spec.hpp"

#include <cmath>

namespace troupe::kernels {

Initial Initial::by_fan_in(std::int64_t fan_in) {
  return uniform(static_cast<float>(1.0 / std::sqrt(static_cast<double>(fan_in))));
}

Initial Initial::by_fan_out(std::int64_t fan_out) {
  return normal(static_cast<float>(std::sqrt(2.0 / static_cast<double>(fan_out))));
}

}  // namespace troupe::kernels
