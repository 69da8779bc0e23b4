#include "kernels/statistics.hpp"

#include <algorithm>

namespace troupe::kernels {

void update_statistics(const Model& model, std::size_t begin, std::span<const float> sums,
                       float scale, std::span<float> parameters) {
  const std::size_t end = begin + sums.size();
  for (const ParameterInfo& info : model.parameters()) {
    if (info.kind != ParameterKind::statistic) continue;
    const std::size_t last = std::min(end, info.offset + info.elements);
    for (std::size_t i = std::max(begin, info.offset); i < last; ++i)
      parameters[i] += info.momentum * (sums[i - begin] * scale - parameters[i]);
  }
}

}  // namespace troupe::kernels
