#include "actors/data/sampler.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/philox.hpp"

namespace troupe::train {

Result<std::unique_ptr<Sampler>> Sampler::make(const SamplerOptions& options) {
  const auto wrong = [](std::string what) {
    return Error{Code::invalid_argument, std::move(what)};
  };
  if (options.ranks == 0 || options.batch == 0 || options.batch % options.ranks != 0)
    return wrong(
        fmt::format("a batch of {} cannot be shared equally by {} ranks; change data.batch "
                    "or job.ranks",
                    options.batch, options.ranks));
  if (options.samples < options.batch)
    return wrong(
        fmt::format("the data set has {} samples, which is not one batch of {}; lower "
                    "data.batch",
                    options.samples, options.batch));
  if (options.samples > UINT32_MAX)
    return wrong(fmt::format("the data set has {} samples, but at most {} are supported",
                             options.samples, UINT32_MAX));
  return std::unique_ptr<Sampler>(new Sampler(options));
}

std::vector<std::uint32_t> Sampler::samples(std::uint64_t step, std::uint32_t rank) const {
  TROUPE_CHECK(rank < options_.ranks, fmt::format("rank {} of {}", rank, options_.ranks));
  const auto order = permutation(step / steps_per_epoch());
  const std::uint64_t begin = step % steps_per_epoch() * options_.batch + rank * batch_per_rank();
  const auto first = order->begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(batch_per_rank())};
}

std::shared_ptr<const Sampler::Permutation> Sampler::permutation(std::uint64_t epoch) const {
  // Computed under the lock: the ranks of a node come to a new epoch together, and one of them is
  // enough. Even and odd epochs have a place each, since loaders run ahead of each other by less
  // than an epoch; it is no more than a cache.
  MutexLock lock(mutex_);
  Epoch& recent = recent_[epoch % 2];
  if (recent.permutation == nullptr || recent.number != epoch) {
    auto order = kernels::permutation(options_.samples, options_.seed, epoch);
    recent = {epoch, std::make_shared<const Permutation>(std::move(order).value())};
  }
  return recent.permutation;
}

TestShare test_share(std::uint64_t samples, std::uint32_t ranks, std::uint32_t rank) {
  TROUPE_CHECK(rank < ranks, fmt::format("rank {} of {}", rank, ranks));
  // The first `samples % ranks` parts have one more.
  const std::uint64_t each = samples / ranks;
  const std::uint64_t longer = samples % ranks;
  const auto begin_of = [&](std::uint64_t part) { return part * each + std::min(part, longer); };
  return {begin_of(rank), begin_of(std::uint64_t{rank} + 1)};
}

}  // namespace troupe::train
