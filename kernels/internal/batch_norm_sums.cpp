#include "kernels/internal/batch_norm_sums.hpp"

#include <fmt/format.h>

namespace troupe::kernels {

Status BatchNormSums::check(std::string_view layer, std::span<const double> values) {
  if (values[0] > 1.0) return {};
  return {
      Code::invalid_argument,
      fmt::format("{}: one value per channel has no variance; train with larger batches", layer)};
}

}  // namespace troupe::kernels
