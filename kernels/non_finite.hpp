#pragma once

#include <cstddef>
#include <span>

namespace troupe::kernels {

/// Index of the first element that is NaN or infinite; `values.size()` if all are finite. One pass
/// over the exponents, as fast as memory where all are. Threads: any.
std::size_t find_non_finite(std::span<const float> values) noexcept;

}  // namespace troupe::kernels
