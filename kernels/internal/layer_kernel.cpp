#include "kernels/internal/layer_kernel.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/cpu/internal/backend.hpp"

namespace troupe::kernels {

Activation plain_activation(const Shape& shape) {
  return {shape, Activation::Layout::plain, static_cast<std::size_t>(shape.elements()), {}};
}

Activation interleaved_activation(const Shape& shape) {
  const std::int64_t groups = (shape[0] + kLanes - 1) / kLanes;
  const auto floats = static_cast<std::size_t>(groups * kLanes * shape.without_first().elements());
  return {shape, Activation::Layout::interleaved, floats, {}};
}

bool KernelRequest::adds_gradient(std::size_t parameter) const {
  const std::size_t index = layers[0].parameters[parameter];
  const Layer* const end = model.layers().data() + model.layers().size();
  return std::any_of(layers.data() + layers.size(), end, [&](const Layer& later) {
    return std::ranges::find(later.parameters, index) != later.parameters.end();
  });
}

KernelMaker find_kernel(const KernelKey& key) noexcept {
  return key.device == Device::cpu ? cpu::find_kernel(key.operation, key.dtype) : nullptr;
}

bool lie_alike(Device device, const Activation& a, const Activation& b) {
  if (a.layout != b.layout) return false;
  if (a.layout != Activation::Layout::blocked) return true;
  return device == Device::cpu && cpu::lie_alike(a, b);
}

void add_into(Device device, float* a, const float* b, std::size_t n, int threads) {
  TROUPE_CHECK(device == Device::cpu, "no kernel is made for a device that is not built in");
  cpu::add_into(a, b, n, threads);
}

MadeKernel make_reorder(Device device, const Activation& from, const Activation& to, int threads,
                        SharedScratch& scratch) {
  if (device == Device::cpu) return cpu::make_reorder(from, to, threads, scratch);
  return Error{Code::not_supported, fmt::format("this build has no {} backend", to_string(device))};
}

}  // namespace troupe::kernels
