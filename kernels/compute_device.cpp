#include "kernels/compute_device.hpp"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "kernels/cpu/internal/cpu_backend.hpp"
#include "kernels/internal/backend.hpp"
#include "kernels/simulated/internal/simulated_backend.hpp"

#ifdef TROUPE_CUDA
#include "kernels/cuda/internal/cuda_backend.hpp"
#endif

namespace troupe::kernels {

Result<DeviceName> DeviceName::parse(std::string_view text) {
  const auto wrong = [&] {
    return Error{Code::invalid_argument,
                 fmt::format("'{}' is no device; there are cpu, cuda (cuda:1 is the second one) "
                             "and simulated (simulated:7 with another seed)",
                             text)};
  };
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  DeviceName name;
  bool found = false;
  for (const Device device : {Device::cpu, Device::cuda, Device::simulated})
    if (kind == to_string(device)) {
      name.kind = device;
      found = true;
    }
  if (!found) return wrong();
  if (colon == text.npos) return name;
  const std::string_view number = text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), name.number);
  if (error != std::errc() || end != number.data() + number.size() || name.kind == Device::cpu)
    return wrong();
  return name;
}

std::string to_string(const DeviceName& name) {
  if (name.number == 0) return std::string(to_string(name.kind));
  return fmt::format("{}:{}", to_string(name.kind), name.number);
}

ComputeDevice::ComputeDevice() : backend_(cpu::make_backend()) {}

Result<ComputeDevice> ComputeDevice::open(const DeviceName& name) {
  switch (name.kind) {
    case Device::cpu:
      return ComputeDevice();
    case Device::simulated: {
      TROUPE_ASSIGN(auto backend, simulated::make_backend({.seed = name.number}));
      return ComputeDevice(std::move(backend));
    }
    case Device::cuda:
#ifdef TROUPE_CUDA
    {
      TROUPE_ASSIGN(auto backend, cuda::make_backend(name.number));
      return ComputeDevice(std::move(backend));
    }
#else
      break;
#endif
  }
  return Error{Code::not_supported,
               fmt::format("this build has no {} backend; use device cpu, or build with "
                           "-DTROUPE_CUDA=ON",
                           to_string(name.kind))};
}

const DeviceName& ComputeDevice::name() const noexcept {
  return backend_->name();
}
Result<Buffer> ComputeDevice::allocate(std::size_t bytes) const {
  return backend_->allocate(bytes);
}
Result<Buffer> ComputeDevice::allocate_staging(std::size_t bytes) const {
  return backend_->allocate_staging(bytes);
}
MemoryStatistics ComputeDevice::memory() const {
  return backend_->memory();
}
void ComputeDevice::trim() const {
  backend_->trim();
}

}  // namespace troupe::kernels
