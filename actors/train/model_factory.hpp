#pragma once

#include "actors/config/job_config.hpp"
#include "actors/data/dataset.hpp"
#include "kernels/model.hpp"
#include "kernels/models.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// The job's model for images of the data set's size. Errors: `not_found` naming the model,
/// `shape_mismatch` if it cannot take images of that size.
Result<kernels::Model> make_model(const JobConfig& config, const ImageDataset& data);

/// How the job's ranks compute it.
kernels::WorkspaceOptions workspace_options(const JobConfig& config);

}  // namespace troupe::train
