#pragma once

#include <cstddef>
#include <vector>

#include "kernels/custom_layer.hpp"
#include "kernels/internal/layer_kernel.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Where a parameter of a layer of the user's is in all of the model's, in floats.
struct CustomParameter {
  std::size_t offset, elements;
};

/// Those of the request's layer, in its order.
std::vector<CustomParameter> custom_parameters(const KernelRequest& request);

/// Passes of a layer of the user's: zero what it is to write, and turn an exception into an error;
/// every error names the layer.
Status run_forward(const Custom& custom, const CustomForward& pass);
Status run_backward(const Custom& custom, const CustomBackward& pass);

}  // namespace troupe::kernels
