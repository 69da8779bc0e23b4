#include "actors/train/non_finite.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "kernels/non_finite.hpp"

namespace troupe::train {

std::optional<NonFinite> find_non_finite(const kernels::Model& model, std::uint64_t begin,
                                         std::span<const float> gradient) {
  if (kernels::find_non_finite(gradient) == gradient.size()) return std::nullopt;
  const auto parameters = model.parameters();
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const auto& info = parameters[i];
    const std::uint64_t first = std::max<std::uint64_t>(begin, info.offset);
    const std::uint64_t last =
        std::min<std::uint64_t>(begin + gradient.size(), info.offset + info.elements);
    if (first >= last) continue;
    const auto part = gradient.subspan(first - begin, last - first);
    if (const auto at = kernels::find_non_finite(part); at < part.size())
      return NonFinite{.where = info.name, .nan = std::isnan(part[at])};
  }
  return std::nullopt;  // only in the padding, which no parameter takes
}

std::string describe(const NonFinite& x) {
  const auto* const what = x.nan ? "NaN" : "infinite";
  if (x.rank == NonFinite::kSum)
    return x.where.empty()
               ? fmt::format("the loss summed over all ranks is {}", what)
               : fmt::format(
                     "the gradient summed over all ranks is {} in {}, though each rank's "
                     "is finite",
                     what, x.where);
  if (x.where.empty()) return fmt::format("the loss of rank {} is {}", x.rank, what);
  return fmt::format("the gradient of rank {} is {} in {}", x.rank, what, x.where);
}

}  // namespace troupe::train
