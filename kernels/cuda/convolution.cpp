#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/batch_norm_bodies.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/cudnn_graph.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

namespace {

// The tensors of a convolution, or their gradients.
enum : std::int64_t { kX = 1, kWeight = 2, kY = 3 };

/// Which of cuDNN's attributes an operation's parts are.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, weight, y, alpha, beta;
};
constexpr OperationNames kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
constexpr OperationNames kBackwardData{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
constexpr OperationNames kBackwardFilter{
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

/// A row-major tensor of four dimensions: [batch, channels, height, width] or [out, in / groups,
/// kernel, kernel]. cuDNN takes the number of groups from the two numbers of input channels.
Result<GraphTensor> plain_tensor(std::int64_t id, const Shape& shape) {
  const std::array<std::int64_t, 4> strides{shape[1] * shape[2] * shape[3], shape[2] * shape[3],
                                            shape[3], 1};
  return GraphTensor::make(id, shape.dims(), strides);
}

Result<Descriptor> describe_windows(const Convolution& spec) {
  const auto twice = [](std::int64_t value) { return std::array{value, value}; };
  return DescriptorBuilder(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, twice(spec.stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, twice(spec.dilation))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, twice(spec.padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, twice(spec.padding))
      .finish();
}

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
    TROUPE_ASSIGN(forward_, plan_operation(request, kForward));
    if (request.mode == Mode::inference) return {};
    TROUPE_ASSIGN(weight_gradient_, plan_operation(request, kBackwardFilter));
    if (!request.input_gradient()) return {};
    TROUPE_ASSIGN(input_gradient_, plan_operation(request, kBackwardData));
    return {};
  }

  Result<GraphPlan> plan_operation(const KernelRequest& request, const OperationNames& names) {
    const Layer& layer = request.layers[0];
    TROUPE_ASSIGN(Descriptor windows, describe_windows(std::get<Convolution>(layer.spec)));
    TROUPE_ASSIGN(GraphTensor x, plain_tensor(kX, inputs_[0].shape));
    TROUPE_ASSIGN(GraphTensor weight,
                  plain_tensor(kWeight, request.model.parameters()[layer.parameters[0]].shape));
    TROUPE_ASSIGN(GraphTensor y, plain_tensor(kY, output_.shape));
    TROUPE_ASSIGN(Descriptor operation, DescriptorBuilder(names.type)
                                            .set(names.convolution, windows)
                                            .set(names.x, x.descriptor)
                                            .set(names.weight, weight.descriptor)
                                            .set(names.y, y.descriptor)
                                            .set(names.alpha, 1.0f)
                                            .set(names.beta, 0.0f)
                                            .finish());
    std::vector<Descriptor> parts;
    for (Descriptor* part : {&windows, &x.descriptor, &weight.descriptor, &y.descriptor})
      parts.push_back(std::move(*part));
    return GraphPlan::make(context(), std::move(operation), std::move(parts), scratch_);
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
          ChannelSums{batch_, channels_, area_, pass.output_gradient, pass.gradients + bias_}));
    if (pass.input_gradient() == nullptr) return {};
    return run(input_gradient_, stream, pass.input_gradient(), pass.parameters + weight_,
               pass.output_gradient);
  }

  /// cuDNN has no const; what is not the operation's result is not written.
  Status run(const GraphPlan& plan, CudaStream& stream, const float* x, const float* weight,
             const float* y) {
    return plan.enqueue(context(), stream.handle(), scratch_,
                        {{kX, const_cast<float*>(x)},
                         {kWeight, const_cast<float*>(weight)},
                         {kY, const_cast<float*>(y)}});
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
