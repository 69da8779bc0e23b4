#pragma once

#include <cstddef>

namespace troupe::kernels::cpu {

/// sums[c] = the sum of rows[r * width + c] over r < count, first row first, or added to what is
/// there: the same bits for any number of threads.
void column_sums(const float* rows, std::size_t count, std::size_t width, float* sums, bool add,
                 int threads);

}  // namespace troupe::kernels::cpu
