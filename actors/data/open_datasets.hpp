#pragma once

#include <memory>
#include <string>

#include "actors/config/job_config.hpp"
#include "actors/data/dataset.hpp"
#include "actors/data/skip_bad_samples.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// The two data sets of a job, of one layout.
struct Datasets {
  std::unique_ptr<Dataset> train, test;
  /// The same two, if damaged samples are replaced; otherwise null.
  const SkipBadSamples* train_skips = nullptr;
  const SkipBadSamples* test_skips = nullptr;

  /// Equal on all nodes that read the same data.
  std::string content_hash() const { return train->content_hash() + test->content_hash(); }
};

/// Opens what the table [data] names, in its format. The job must be valid.
/// Errors: those of the format; `corrupt_data` if training and test samples differ in layout.
Result<Datasets> open_datasets(const JobConfig& config);

}  // namespace troupe::train
