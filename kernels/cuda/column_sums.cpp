#include "kernels/cuda/internal/column_sums.hpp"

#include <algorithm>

#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

namespace {
// Runs are side by side on the device; few rows are one run, in the order of the CPU's sum.
constexpr std::size_t kMostRuns = 64;
constexpr std::size_t kLeastRows = 32;
}  // namespace

RowRuns::RowRuns(std::size_t count) noexcept
    : runs(std::clamp<std::size_t>(count / kLeastRows, 1, kMostRuns)),
      rows((count + runs - 1) / runs) {}

ColumnSums::ColumnSums(std::size_t count, std::size_t width, ScratchPlaces& scratch)
    : count_(count),
      width_(width),
      runs_(count),
      partial_(scratch.add(runs_.runs * width * sizeof(float))) {}

Status ColumnSums::enqueue(cudaStream_t stream, const ScratchPlaces& scratch, const float* rows,
                           float* sums) const {
  auto* const partial = reinterpret_cast<float*>(scratch.at(partial_));
  TROUPE_TRY(for_each(stream, runs_.runs * width_,
                      PartialColumnSums{rows, count_, width_, runs_.rows, partial}));
  return for_each(stream, width_, SumOfRuns{partial, runs_.runs, width_, sums});
}

}  // namespace troupe::kernels::cuda
