#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/internal/cuda_status.hpp"

namespace troupe::kernels::cuda {

/// Makes a device the calling thread's for a scope. CUDA keeps the current device for each thread;
/// a program that uses CUDA itself finds its own again.
class DeviceScope {
public:
  explicit DeviceScope(int ordinal) {
    status_ = check(cudaGetDevice(&before_), "cudaGetDevice");
    if (status_.ok() && before_ != ordinal) {
      status_ = check(cudaSetDevice(ordinal), "cudaSetDevice");
      changed_ = status_.ok();
    }
  }
  ~DeviceScope() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  const Status& status() const noexcept { return status_; }

private:
  int before_ = 0;
  bool changed_ = false;
  Status status_;
};

}  // namespace troupe::kernels::cuda
