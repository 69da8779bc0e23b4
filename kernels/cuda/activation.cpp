#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

namespace {

/// A function of each element; its derivative is taken of the output, or of the input.
template <class Function, bool kByOutput>
class ActivationKernel final : public CudaKernel {
public:
  using CudaKernel::CudaKernel;
  KernelTraits traits() const noexcept override {
    return {
        .backward_reads_input = !kByOutput, .backward_reads_output = kByOutput, .in_place = true};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each(stream.handle(), output_.floats,
                    ActivationForward<Function>{pass.input(), pass.output});
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    return for_each(stream.handle(), output_.floats,
                    ActivationBackward<Function>{kByOutput ? pass.output : pass.input(),
                                                 pass.output_gradient, pass.input_gradient()});
  }
};

struct KernelOf {
  Context& context;
  const KernelRequest& request;

  template <class Function, bool kByOutput>
  std::unique_ptr<LayerKernel> make() const {
    return std::make_unique<ActivationKernel<Function, kByOutput>>(context, request);
  }
  std::unique_ptr<LayerKernel> operator()(const Gelu& spec) const {
    return spec.form == Gelu::Form::tanh ? make<GeluTanh, false>() : make<GeluErf, false>();
  }
  std::unique_ptr<LayerKernel> operator()(const Silu&) const { return make<SiluOf, false>(); }
  std::unique_ptr<LayerKernel> operator()(const Sigmoid&) const { return make<SigmoidOf, true>(); }
  std::unique_ptr<LayerKernel> operator()(const Tanh&) const { return make<TanhOf, true>(); }
  template <class Other>
  std::unique_ptr<LayerKernel> operator()(const Other&) const {
    return nullptr;
  }
};

}  // namespace

MadeKernel make_activation(Context& context, const KernelRequest& request) {
  return MadeKernel(std::visit(KernelOf{context, request}, request.layers[0].spec));
}

}  // namespace troupe::kernels::cuda
