#include "kernels/rank_sums.hpp"

#include <algorithm>
#include <variant>

#include "kernels/internal/batch_norm_sums.hpp"

namespace troupe::kernels {

RankSums rank_sums(const Model& model) {
  RankSums sums;
  for (const Layer& layer : model.layers()) {
    const auto* const norm = std::get_if<BatchNorm>(&layer.spec);
    if (norm == nullptr || !norm->synchronized) continue;
    const auto channels = static_cast<std::size_t>(layer.input()[0]);
    sums.calls += 2;
    sums.widest = std::max(sums.widest, BatchNormSums::width(channels));
  }
  return sums;
}

}  // namespace troupe::kernels
