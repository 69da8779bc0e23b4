#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/batch_norm_bodies.hpp"
#include "kernels/cuda/internal/convolution_graph.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/rounding.hpp"

namespace troupe::kernels::cuda {

namespace {

/// A tensor of a convolution, row-major and f32 outside, channels last in the scratch; there
/// channels (and those of a weight's outputs) are filled up with zeros to what cuDNN takes. Zeros
/// as factors change no sum.
class Image {
public:
  Image() = default;
  Image(const Shape& shape, bool is_weight) : shape_(shape) {
    const auto filled = [](std::int64_t n) {
      return (n + kChannelAlignment - 1) / kChannelAlignment * kChannelAlignment;
    };
    filled_ = Shape{is_weight ? filled(shape[0]) : shape[0], filled(shape[1]), shape[2], shape[3]};
  }

  const Shape& filled() const { return filled_; }
  std::size_t elements() const { return static_cast<std::size_t>(filled_.elements()); }
  ChannelSizes sizes() const {
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    return {size(shape_[0]), size(shape_[1]), size(shape_[2] * shape_[3]), size(filled_[0]),
            size(filled_[1])};
  }

private:
  Shape shape_, filled_;
};

/// A convolution whose factors are rounded to 16 bits: they are brought to channels last at the
/// same time, where tensor cores take them, and the results back.
class RoundedConvolutionKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request, DType factors) {
    auto kernel = std::make_unique<RoundedConvolutionKernel>(context, request, factors);
    TROUPE_TRY(kernel->plan(request));
    return MadeKernel(std::move(kernel));
  }

  RoundedConvolutionKernel(Context& context, const KernelRequest& request, DType factors)
      : CudaKernel(context, request),
        factors_(factors),
        weight_offset_(request.offset_of(0)),
        scratch_(request.scratch) {
    const Layer& layer = request.layers[0];
    x_ = Image(inputs_[0].shape, false);
    weight_ = Image(request.model.parameters()[layer.parameters[0]].shape, true);
    y_ = Image(output_.shape, false);
    has_bias_ = layer.parameters.size() > 1;
    if (has_bias_) bias_offset_ = request.offset_of(1);
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

private:
  static constexpr std::size_t kFactorBytes = 2;

  Status plan(const KernelRequest& request) {
    x_place_ = scratch_.add(x_.elements() * kFactorBytes);
    weight_place_ = scratch_.add(weight_.elements() * kFactorBytes);
    y_place_ = scratch_.add(y_.elements() * sizeof(float));
    TROUPE_ASSIGN(forward_, plan_pass(request, ConvolutionPass::forward));
    if (request.mode == Mode::inference) return {};
    // In the backward pass y's gradient is a factor, in the place of y.
    weight_result_ = scratch_.add(weight_.elements() * sizeof(float));
    TROUPE_ASSIGN(weight_gradient_, plan_pass(request, ConvolutionPass::weight_gradient));
    if (!request.input_gradient()) return {};
    x_result_ = scratch_.add(x_.elements() * sizeof(float));
    TROUPE_ASSIGN(input_gradient_, plan_pass(request, ConvolutionPass::input_gradient));
    return {};
  }

  Result<GraphPlan> plan_pass(const KernelRequest& request, ConvolutionPass pass) {
    return plan_convolution(context(), pass, std::get<Convolution>(request.layers[0].spec),
                            {x_.filled(), weight_.filled(), y_.filled()}, factors_, scratch_);
  }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    TROUPE_TRY(round(stream, x_, pass.input(), x_place_));
    TROUPE_TRY(round(stream, weight_, pass.parameters + weight_offset_, weight_place_));
    TROUPE_TRY(run(forward_, stream, x_place_, weight_place_, y_place_));
    return bring(stream, y_, y_place_, has_bias_ ? pass.parameters + bias_offset_ : nullptr,
                 pass.output);
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    TROUPE_TRY(round(stream, x_, pass.input(), x_place_));
    TROUPE_TRY(round(stream, y_, pass.output_gradient, y_place_));
    TROUPE_TRY(run(weight_gradient_, stream, x_place_, weight_result_, y_place_));
    TROUPE_TRY(bring(stream, weight_, weight_result_, nullptr, pass.gradients + weight_offset_));
    if (has_bias_) {
      const ChannelSizes sizes = y_.sizes();
      TROUPE_TRY(for_each_row(stream.handle(), sizes.channels,
                              ChannelSums{{sizes.samples, sizes.channels, sizes.area},
                                          pass.output_gradient,
                                          pass.gradients + bias_offset_}));
    }
    if (pass.input_gradient() == nullptr) return {};
    TROUPE_TRY(round(stream, weight_, pass.parameters + weight_offset_, weight_place_));
    TROUPE_TRY(run(input_gradient_, stream, x_result_, weight_place_, y_place_));
    return bring(stream, x_, x_result_, nullptr, pass.input_gradient());
  }

  Status round(CudaStream& stream, const Image& image, const float* from, std::size_t place) {
    return round_to_channels_last(stream.handle(), factors_, image.sizes(), from,
                                  reinterpret_cast<std::uint16_t*>(scratch_.at(place)));
  }
  Status bring(CudaStream& stream, const Image& image, std::size_t place, const float* bias,
               float* to) {
    const ChannelSizes sizes = image.sizes();
    return for_each(
        stream.handle(), sizes.runs_of(sizes.samples),
        FromChannelsLast{sizes, reinterpret_cast<const float*>(scratch_.at(place)), bias, to});
  }
  Status run(const GraphPlan& plan, CudaStream& stream, std::size_t x, std::size_t weight,
             std::size_t y) {
    return plan.enqueue(context(), stream.handle(), scratch_,
                        {{kConvolutionX, scratch_.at(x)},
                         {kConvolutionWeight, scratch_.at(weight)},
                         {kConvolutionY, scratch_.at(y)}});
  }

  DType factors_;
  Image x_, weight_, y_;
  std::size_t weight_offset_, bias_offset_ = 0;
  bool has_bias_ = false;
  ScratchPlaces scratch_;
  std::size_t x_place_ = 0, weight_place_ = 0, y_place_ = 0;
  std::size_t x_result_ = 0, weight_result_ = 0;
  GraphPlan forward_, weight_gradient_, input_gradient_;
};

}  // namespace

MadeKernel make_rounded_convolution(Context& context, const KernelRequest& request, DType factors) {
  // cuDNN's engines with a result in f32 have no groups.
  if (std::get<Convolution>(request.layers[0].spec).groups > 1) return MadeKernel(nullptr);
  MadeKernel made = RoundedConvolutionKernel::make(context, request, factors);
  // It is then computed in f32.
  if (made.code() == Code::not_supported) return MadeKernel(nullptr);
  return made;
}

}  // namespace troupe::kernels::cuda
