#pragma once

#include <string>
#include <utility>

#include "kernels/cuda/internal/context.hpp"
#include "kernels/cuda/internal/cuda_stream.hpp"
#include "kernels/cuda/internal/device_scope.hpp"
#include "kernels/internal/layer_kernel.hpp"

namespace troupe::kernels::cuda {

/// What all kernels here share: calls happen on their device, and errors name the layer. All
/// activations are plain.
class CudaKernel : public LayerKernel {
public:
  /// One that reads and writes what the layer does.
  CudaKernel(Context& context, const KernelRequest& request)
      : context_(context), name_(describe(request.layers[0].spec)) {
    for (const KernelInput& input : request.inputs)
      inputs_.push_back(plain_activation(input.activation.shape));
    output_ = plain_activation(request.output_shape());
  }

  Status forward(const ForwardPass& pass) final {
    return on_device([&] { return enqueue_forward(pass, cuda_stream(*pass.stream)); });
  }
  Status backward(const BackwardPass& pass) final {
    return on_device([&] { return enqueue_backward(pass, cuda_stream(*pass.stream)); });
  }
  Status forward_sums(const ForwardPass& pass, double* sums) final {
    return on_device([&] { return enqueue_forward_sums(pass, sums, cuda_stream(*pass.stream)); });
  }
  Status backward_sums(const BackwardPass& pass, double* sums) final {
    return on_device([&] { return enqueue_backward_sums(pass, sums, cuda_stream(*pass.stream)); });
  }
  Status add_statistics(const StatisticsPass& pass) const final {
    return on_device([&] { return enqueue_statistics(pass, cuda_stream(*pass.stream)); });
  }

protected:
  Context& context() const noexcept { return context_; }

private:
  virtual Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) = 0;
  virtual Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) = 0;
  virtual Status enqueue_forward_sums(const ForwardPass&, double*, CudaStream&) { return {}; }
  virtual Status enqueue_backward_sums(const BackwardPass&, double*, CudaStream&) { return {}; }
  virtual Status enqueue_statistics(const StatisticsPass&, CudaStream&) const { return {}; }

  template <class Body>
  Status on_device(const Body& body) const {
    const DeviceScope scope(context_.ordinal());
    TROUPE_TRY(scope.status());
    Status done = body();
    if (done.ok() || done.error().message.starts_with(name_)) return done;
    return {done.code(), name_ + ": " + done.error().message};
  }

  Context& context_;
  std::string name_;
};

/// Floats of a kernel's own on the device.
inline float* floats(Buffer& buffer) noexcept {
  return reinterpret_cast<float*>(buffer.data());
}
inline const float* floats(const Buffer& buffer) noexcept {
  return reinterpret_cast<const float*>(buffer.data());
}

}  // namespace troupe::kernels::cuda
