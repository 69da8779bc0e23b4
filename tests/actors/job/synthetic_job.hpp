#pragma once

#include <filesystem>

#include "actors/config/job_config.hpp"

namespace troupe::train {

/// A folder that is gone with the object.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

/// A small job on 8x8 images that an MLP can learn: each class lights up its own pixels. Writes
/// the data into `folder`; checkpoints go to `folder`/checkpoints.
JobConfig synthetic_job(const std::filesystem::path& folder);
/// The same with a narrow ResNet-18 on four ranks, for an epoch.
JobConfig synthetic_resnet_job(const std::filesystem::path& folder);

}  // namespace troupe::train
