#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/lanes.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels::cpu {

/// Zeroed floats of a kernel's own.
class Scratch {
public:
  static Result<Scratch> zeros(Index count);
  float* data() noexcept { return reinterpret_cast<float*>(buffer_.data()); }
  const float* data() const noexcept { return reinterpret_cast<const float*>(buffer_.data()); }
  Index size() const noexcept { return static_cast<Index>(buffer_.size() / sizeof(float)); }
  void clear() noexcept;

private:
  Buffer buffer_;
};

/// Groups of eight samples in an activation.
inline Index groups_of(const Activation& activation) {
  return (activation.shape[0] + kLanes - 1) / kLanes;
}

// Null where the choice is another kernel, or where the fused one does not apply.
MadeKernel make_portable_convolution(const KernelRequest& request);
MadeKernel make_portable_linear(const KernelRequest& request);
MadeKernel make_portable_pooling(const KernelRequest& request);
MadeKernel make_interleave(const Activation& from, const Activation& to, int threads);

}  // namespace troupe::kernels::cpu
