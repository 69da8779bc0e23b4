#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

namespace {

/// The sum of two inputs, and the ReLU of it.
class AddKernel final : public CudaKernel {
public:
  AddKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request), relu_(request.layers.size() > 1) {}

  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false,
            .backward_reads_output = relu_,
            .in_place = true,
            .one_gradient = true,
            .passes_gradient = !relu_};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    const float *const a = pass.inputs[0], *const b = pass.inputs[1];
    if (relu_) return for_each(stream.handle(), output_.floats, ReluOfSum{a, b, pass.output});
    return for_each(stream.handle(), output_.floats, Sum{a, b, pass.output});
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    float* const to =
        pass.input_gradients[0] != nullptr ? pass.input_gradients[0] : pass.input_gradients[1];
    if (to == nullptr) return {};
    return for_each(stream.handle(), output_.floats,
                    ReluBackward{pass.output, pass.output_gradient, to});
  }

  bool relu_;
};

}  // namespace

Status add_into(CudaStream& stream, float* a, const float* b, std::size_t n) {
  return for_each(stream.handle(), n, Sum{a, b, a});
}

MadeKernel make_add(Context& context, const KernelRequest& request) {
  return MadeKernel(std::make_unique<AddKernel>(context, request));
}

}  // namespace troupe::kernels::cuda
