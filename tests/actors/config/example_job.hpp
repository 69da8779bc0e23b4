#pragma once

#include <string>

#include "actors/config/job_config.hpp"

namespace troupe::train {

/// The keys that are required, and no more.
inline const std::string kSmallestJob = R"([job]
ranks = 8
[model]
name = "lenet5"
[data]
train_images = "train-images.gz"
train_labels = "train-labels.gz"
test_images = "test-images.gz"
test_labels = "test-labels.gz"
batch = 512
)";

inline JobConfig smallest_job() {
  return parse_job(kSmallestJob).value();
}

}  // namespace troupe::train
