#pragma once

#include "kernels/custom_layer.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Passes of a layer of the user's: zero what it is to write, and turn an exception into an error;
/// every error names the layer.
Status run_forward(const Custom& custom, const CustomForward& pass);
Status run_backward(const Custom& custom, const CustomBackward& pass);

}  // namespace troupe::kernels
