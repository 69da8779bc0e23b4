#pragma once

#include <string_view>

#include <driver_types.h>

#include "runtime/base/status.hpp"

namespace troupe::kernels::cuda {

/// What a call of CUDA said, as a Status: `what` is the operation ("copy"). Errors:
/// `resource_exhausted` if memory ran out, else `unavailable`, with CUDA's name and text. Of work
/// that failed later (an access out of bounds), the error comes from whatever call is next; the
/// process must then end, as CUDA takes no more work of it.
Status check(cudaError_t result, std::string_view what);

}  // namespace troupe::kernels::cuda
