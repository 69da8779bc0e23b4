#include <cstddef>
#include <utility>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/batch_norm_bodies.hpp"
#include "kernels/cuda/internal/convolution_graph.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

namespace {

/// A convolution by cuDNN on row-major images; the bias and its gradient are ours.
class ConvolutionKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request) {
    auto kernel = std::make_unique<ConvolutionKernel>(context, request);
    TROUPE_TRY(kernel->plan(request));
    return MadeKernel(std::move(kernel));
  }

  ConvolutionKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        batch_(static_cast<std::size_t>(request.batch())),
        channels_(static_cast<std::size_t>(output_.shape[1])),
        area_(static_cast<std::size_t>(output_.shape[2] * output_.shape[3])),
        weight_(request.offset_of(0)),
        scratch_(request.scratch) {
    has_bias_ = request.layers[0].parameters.size() > 1;
    if (has_bias_) bias_ = request.offset_of(1);
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

private:
  Status plan(const KernelRequest& request) {
    TROUPE_ASSIGN(forward_, plan_pass(request, ConvolutionPass::forward));
    if (request.mode == Mode::inference) return {};
    TROUPE_ASSIGN(weight_gradient_, plan_pass(request, ConvolutionPass::weight_gradient));
    if (!request.input_gradient()) return {};
    TROUPE_ASSIGN(input_gradient_, plan_pass(request, ConvolutionPass::input_gradient));
    return {};
  }

  Result<GraphPlan> plan_pass(const KernelRequest& request, ConvolutionPass pass) {
    const Layer& layer = request.layers[0];
    const ConvolutionShapes shapes{
        inputs_[0].shape, request.model.parameters()[layer.parameters[0]].shape, output_.shape};
    return plan_convolution(context(), pass, std::get<Convolution>(layer.spec), shapes, DType::f32,
                            scratch_);
  }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    TROUPE_TRY(run(forward_, stream, pass.input(), pass.parameters + weight_, pass.output));
    if (!has_bias_) return {};
    return for_each(stream.handle(), output_.floats,
                    AddToChannels{pass.output, pass.parameters + bias_, channels_, area_});
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    TROUPE_TRY(run(weight_gradient_, stream, pass.input(), pass.gradients + weight_,
                   pass.output_gradient));
    if (has_bias_)
      TROUPE_TRY(for_each_row(
          stream.handle(), channels_,
          ChannelSums{{batch_, channels_, area_}, pass.output_gradient, pass.gradients + bias_}));
    if (pass.input_gradient() == nullptr) return {};
    return run(input_gradient_, stream, pass.input_gradient(), pass.parameters + weight_,
               pass.output_gradient);
  }

  Status run(const GraphPlan& plan, CudaStream& stream, const float* x, const float* weight,
             const float* y) {
    return plan.enqueue(context(), stream.handle(), scratch_,
                        {{kConvolutionX, x}, {kConvolutionWeight, weight}, {kConvolutionY, y}});
  }

  std::size_t batch_, channels_, area_;  ///< of the output
  std::size_t weight_, bias_ = 0;
  bool has_bias_ = false;
  ScratchPlaces scratch_;
  GraphPlan forward_, weight_gradient_, input_gradient_;
};

}  // namespace

MadeKernel make_convolution(Context& context, const KernelRequest& request) {
  return ConvolutionKernel::make(context, request);
}

}  // namespace troupe::kernels::cuda
