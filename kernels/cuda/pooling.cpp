#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/pooling_bodies.hpp"

namespace troupe::kernels::cuda {

namespace {

Windows windows_of(const Layer& layer) {
  const Shape &in = layer.input(), &out = layer.output;
  if (std::holds_alternative<GlobalAveragePooling>(layer.spec))
    return {in[1], in[2], 1, 1, in[1], in[2], in[1], in[2], 0};
  const auto& spec = std::get<Pooling>(layer.spec);
  return {in[1],       in[2],       out[1],      out[2],      spec.kernel,
          spec.kernel, spec.stride, spec.stride, spec.padding};
}

class AveragePoolingKernel final : public CudaKernel {
public:
  AveragePoolingKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request), windows_(windows_of(request.layers[0])) {}
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each(stream.handle(), output_.floats,
                    AveragePoolingForward{windows_, pass.input(), pass.output});
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    return for_each(stream.handle(), inputs_[0].floats,
                    AveragePoolingBackward{windows_, pass.output_gradient, pass.input_gradient()});
  }

  Windows windows_;
};

class MaxPoolingKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request) {
    auto kernel = std::make_unique<MaxPoolingKernel>(context, request);
    TROUPE_ASSIGN(kernel->chosen_, context.allocate(kernel->output_.floats * sizeof(std::int32_t)));
    return MadeKernel(std::move(kernel));
  }

  MaxPoolingKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request), windows_(windows_of(request.layers[0])) {}
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each(stream.handle(), output_.floats,
                    MaxPoolingForward{windows_, pass.input(), pass.output, chosen()});
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    return for_each(
        stream.handle(), inputs_[0].floats,
        MaxPoolingBackward{windows_, chosen(), pass.output_gradient, pass.input_gradient()});
  }

  std::int32_t* chosen() { return reinterpret_cast<std::int32_t*>(chosen_.data()); }

  Windows windows_;
  Buffer chosen_;  ///< of the last forward pass, for each window
};

}  // namespace

MadeKernel make_pooling(Context& context, const KernelRequest& request) {
  const auto* const spec = std::get_if<Pooling>(&request.layers[0].spec);
  if (spec != nullptr && spec->kind == Pooling::Kind::max)
    return MaxPoolingKernel::make(context, request);
  return MadeKernel(std::make_unique<AveragePoolingKernel>(context, request));
}

}  // namespace troupe::kernels::cuda
