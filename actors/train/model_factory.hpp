#pragma once

#include "actors/config/job_config.hpp"
#include "actors/data/dataset.hpp"
#include "kernels/compute_device.hpp"
#include "kernels/model.hpp"
#include "kernels/models.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// The job's model for samples of that layout. Errors: `not_found` naming the model,
/// `shape_mismatch` if it cannot take such an input, `invalid_argument` if one of model and samples
/// is of tokens and the other is not.
Result<kernels::Model> make_model(const JobConfig& config, const SampleLayout& layout);

/// What the job's ranks compute on. Errors: as kernels::ComputeDevice::open.
Result<kernels::ComputeDevice> open_device(const JobConfig& config);

/// How the job's ranks compute it, on that device.
kernels::WorkspaceOptions workspace_options(const JobConfig& config, kernels::ComputeDevice device);

}  // namespace troupe::train
