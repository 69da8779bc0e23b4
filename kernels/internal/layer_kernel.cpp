#include "kernels/internal/layer_kernel.hpp"

#include <algorithm>

#include "kernels/internal/backend.hpp"

namespace troupe::kernels {

Activation plain_activation(const Shape& shape) {
  return {shape, Activation::Layout::plain, static_cast<std::size_t>(shape.elements()), {}};
}

Activation interleaved_activation(const Shape& shape) {
  const std::int64_t groups = (shape[0] + kLanes - 1) / kLanes;
  const auto floats = static_cast<std::size_t>(groups * kLanes * shape.without_first().elements());
  return {shape, Activation::Layout::interleaved, floats, {}};
}

Status LayerKernel::forward_sums(const ForwardPass&, double*) {
  return {};
}
Status LayerKernel::backward_sums(const BackwardPass&, double*) {
  return {};
}
Status LayerKernel::check_sums(std::span<const double>) const {
  return {};
}

bool KernelRequest::adds_gradient(std::size_t parameter) const {
  const std::size_t index = layers[0].parameters[parameter];
  const Layer* const end = model.layers().data() + model.layers().size();
  return std::any_of(layers.data() + layers.size(), end, [&](const Layer& later) {
    return std::ranges::find(later.parameters, index) != later.parameters.end();
  });
}

bool lie_alike(const Backend& backend, const Activation& a, const Activation& b) {
  if (a.layout != b.layout) return false;
  return a.layout != Activation::Layout::blocked || backend.lie_alike(a, b);
}

}  // namespace troupe::kernels
