#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

namespace {

class ReluKernel final : public CudaKernel {
public:
  using CudaKernel::CudaKernel;
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .in_place = true};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each(stream.handle(), output_.floats, ReluForward{pass.input(), pass.output});
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    return for_each(stream.handle(), output_.floats,
                    ReluBackward{pass.output, pass.output_gradient, pass.input_gradient()});
  }
};

}  // namespace

MadeKernel make_relu(Context& context, const KernelRequest& request) {
  return MadeKernel(std::make_unique<ReluKernel>(context, request));
}

}  // namespace troupe::kernels::cuda
