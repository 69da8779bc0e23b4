#include "actors/data/skip_bad_samples.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::train {

Status SkipBadSamples::read(std::uint64_t index, Use use, std::span<std::byte> input,
                            std::span<std::byte> labels) const {
  const std::uint64_t most = std::min(kMostInARow, count());
  for (std::uint64_t i = 0; i < most; ++i) {
    const std::uint64_t at = (index + i) % count();
    const Status status = data_->read(at, use, input, labels);
    if (status.code() != Code::corrupt_data) return status;
    note(at, status.error());
    if (i + 1 == most)
      return {Code::corrupt_data, fmt::format("{} samples from {} on are all damaged, the last: {}",
                                              most, index, status.error().message)};
  }
  return {};
}

void SkipBadSamples::note(std::uint64_t index, const Error& error) const {
  MutexLock lock(mutex_);
  if (bad_.empty()) first_ = error.message;
  bad_.insert(index);
}

SkipBadSamples::Found SkipBadSamples::found() const {
  MutexLock lock(mutex_);
  return {bad_.size(), first_};
}

}  // namespace troupe::train
