#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include "kernels/internal/shared_scratch.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::cuda {

/// How rows are split into runs whose sums are then added in order: a pure function of their
/// number, which therefore decides the bits.
struct RowRuns {
  explicit RowRuns(std::size_t rows) noexcept;
  std::size_t runs;
  std::size_t rows;  ///< of a run
};

/// Sums of columns: sums[c] = the sum of rows[r * width + c] over r < count, by runs of rows.
class ColumnSums {
public:
  ColumnSums(std::size_t count, std::size_t width, ScratchPlaces& scratch);
  Status enqueue(cudaStream_t stream, const ScratchPlaces& scratch, const float* rows,
                 float* sums) const;

private:
  std::size_t count_, width_;
  RowRuns runs_;
  std::size_t partial_;  ///< in the scratch
};

}  // namespace troupe::kernels::cuda
