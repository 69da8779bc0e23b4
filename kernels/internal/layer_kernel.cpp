#include "kernels/internal/layer_kernel.hpp"

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

KernelMaker find_kernel(const KernelKey& key) noexcept {
  return key.device == Device::cpu ? cpu::find_kernel(key.operation, key.dtype) : nullptr;
}

MadeKernel make_reorder(Device device, const Activation& from, const Activation& to, int threads) {
  if (device == Device::cpu) return cpu::make_reorder(from, to, threads);
  return Error{Code::not_supported, fmt::format("this build has no {} backend", to_string(device))};
}

}  // namespace troupe::kernels
