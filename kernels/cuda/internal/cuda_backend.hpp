#pragma once

#include <cstdint>
#include <memory>

#include "runtime/base/status.hpp"

namespace troupe::kernels {
class Backend;
}

namespace troupe::kernels::cuda {

/// Opens the device of that number, as CUDA counts them (CUDA_VISIBLE_DEVICES).
/// Errors: `not_found` saying how many there are, `unavailable` with the driver's text.
Result<std::shared_ptr<Backend>> make_backend(std::uint32_t ordinal);

}  // namespace troupe::kernels::cuda
