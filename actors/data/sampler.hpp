#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

struct SamplerOptions {
  std::uint64_t samples = 0;  ///< in the data set
  std::uint64_t batch = 0;    ///< of one step over all ranks; a multiple of `ranks`
  std::uint32_t ranks = 1;
  std::uint64_t seed = 0;
};

/// Says which samples a rank gets at a step: a pure function of the options, step and rank, so that
/// it is the same on whatever node and after whatever was lost.
///
/// An epoch is a permutation of all samples by Fisher and Yates, with random numbers keyed by seed
/// and epoch. It has floor(samples / batch) steps; what is left over is not seen in that epoch.
/// Step t of the epoch takes the t-th run of `batch` samples, and rank r the r-th equal part of the
/// run.
///
/// Threads: any. The newest two epochs' permutations are kept, nothing else.
class Sampler {
public:
  /// Errors: `invalid_argument` if there is not one full batch, 2^32 samples or more, or the
  /// ranks cannot share a batch equally.
  static Result<std::unique_ptr<Sampler>> make(const SamplerOptions& options);

  std::uint64_t steps_per_epoch() const { return options_.samples / options_.batch; }
  std::uint64_t batch_per_rank() const { return options_.batch / options_.ranks; }

  /// Indices of the samples of `rank` (below ranks) at `step`, counted from 0 over all epochs.
  std::vector<std::uint32_t> samples(std::uint64_t step, std::uint32_t rank) const;

private:
  using Permutation = std::vector<std::uint32_t>;
  struct Epoch {
    std::uint64_t number = 0;
    std::shared_ptr<const Permutation> permutation;
  };
  explicit Sampler(const SamplerOptions& options) : options_(options) {}
  std::shared_ptr<const Permutation> permutation(std::uint64_t epoch) const;

  const SamplerOptions options_;
  mutable Mutex mutex_;
  mutable Epoch recent_[2] TROUPE_GUARDED_BY(mutex_);
};

/// Samples `begin` to `end` of a test set.
struct TestShare {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The part of a test set of `samples` that `rank` of `ranks` measures. Parts differ by one at
/// most.
TestShare test_share(std::uint64_t samples, std::uint32_t ranks, std::uint32_t rank);

}  // namespace troupe::train
