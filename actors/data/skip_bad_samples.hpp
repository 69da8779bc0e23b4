#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "actors/data/dataset.hpp"
#include "runtime/base/mutex.hpp"

namespace troupe::train {

/// A data set whose damaged samples are replaced: by the next one that is not, in the order of the
/// indices, the first following the last. That depends on the content only, so it is the same on
/// every node. Other errors stay errors.
///
/// Threads: any, as of every data set.
/// Failure: `corrupt_data` if kMostInARow samples follow each other that are all damaged.
class SkipBadSamples final : public Dataset {
public:
  static constexpr std::uint64_t kMostInARow = 1000;

  explicit SkipBadSamples(std::unique_ptr<Dataset> data) : data_(std::move(data)) {}

  std::uint64_t count() const override { return data_->count(); }
  const SampleLayout& layout() const override { return data_->layout(); }
  const std::string& content_hash() const override { return data_->content_hash(); }
  Status read(std::uint64_t index, Use use, std::span<std::byte> input,
              std::span<std::byte> labels) const override;

  /// Damaged samples that were met here.
  struct Found {
    std::uint64_t count = 0;
    std::string first;  ///< what was wrong with the one met first
  };
  Found found() const;

private:
  void note(std::uint64_t index, const Error& error) const;

  const std::unique_ptr<Dataset> data_;
  mutable Mutex mutex_;
  mutable std::set<std::uint64_t> bad_ TROUPE_GUARDED_BY(mutex_);
  mutable std::string first_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::train
