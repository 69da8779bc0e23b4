#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/column_sums.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/matmul.hpp"
#include "kernels/cuda/internal/rounding.hpp"

namespace troupe::kernels::cuda {

namespace {

/// A linear layer on rows of any number of axes, whose weight [out, in] may be another layer's too:
/// y = x W^T + b, dW = dy^T x, dx = dy W; factors are rounded first, unless they are f32.
class LinearKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request, DType factors) {
    auto kernel = std::make_unique<LinearKernel>(context, request, factors);
    TROUPE_TRY(kernel->plan(request));
    return MadeKernel(std::move(kernel));
  }

  LinearKernel(Context& context, const KernelRequest& request, DType factors)
      : CudaKernel(context, request),
        factors_(factors),
        out_(std::get<Linear>(request.layers[0].spec).out_features),
        in_(request.input().shape[request.input().shape.rank() - 1]),
        rows_(request.input().shape.elements() / in_),
        weight_(request.offset_of(0)),
        adds_weight_(request.adds_gradient(0)),
        scratch_(request.scratch),
        bias_sums_(static_cast<std::size_t>(rows_), static_cast<std::size_t>(out_), scratch_) {
    has_bias_ = request.layers[0].parameters.size() > 1;
    if (has_bias_) bias_ = request.offset_of(1);
    input_factor_ = RoundedFactor(factors, inputs_[0].floats, scratch_);
    weight_factor_ = RoundedFactor(factors, static_cast<std::size_t>(out_ * in_), scratch_);
    if (request.mode == Mode::training)
      gradient_factor_ = RoundedFactor(factors, output_.floats, scratch_);
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

private:
  Status plan(const KernelRequest& request) {
    const MatrixLayout wide{.stride = in_};  // rows of inputs, and of the weight
    const MatrixLayout narrow{.stride = out_};
    const auto transposed = [](MatrixLayout layout) {
      layout.transposed = true;
      return layout;
    };
    TROUPE_ASSIGN(forward_, product({rows_, out_, in_, wide, transposed(wide), narrow}));
    if (request.mode == Mode::inference) return {};
    TROUPE_ASSIGN(weight_gradient_, product({out_, in_, rows_, transposed(narrow), wide, wide}));
    if (!request.input_gradient()) return {};
    TROUPE_ASSIGN(input_gradient_, product({rows_, in_, out_, narrow, wide, wide}));
    return {};
  }

  Result<Matmul> product(MatmulShape shape) {
    shape.factors = factors_;
    return Matmul::make(context(), shape, scratch_);
  }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    TROUPE_ASSIGN(const void* const x, round(input_factor_, stream, pass.input()));
    TROUPE_ASSIGN(const void* const weight,
                  round(weight_factor_, stream, pass.parameters + weight_));
    TROUPE_TRY(
        forward_.enqueue(context(), stream.handle(), scratch_, x, weight, 0.0f, pass.output));
    if (!has_bias_) return {};
    return for_each(
        stream.handle(), output_.floats,
        AddToRows{pass.output, pass.parameters + bias_, static_cast<std::size_t>(out_)});
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    TROUPE_ASSIGN(const void* const x, round(input_factor_, stream, pass.input()));
    TROUPE_ASSIGN(const void* const given, round(gradient_factor_, stream, pass.output_gradient));
    TROUPE_TRY(weight_gradient_.enqueue(context(), stream.handle(), scratch_, given, x,
                                        adds_weight_ ? 1.0f : 0.0f, pass.gradients + weight_));
    if (has_bias_)
      TROUPE_TRY(bias_sums_.enqueue(stream.handle(), scratch_, pass.output_gradient,
                                    pass.gradients + bias_));
    if (pass.input_gradient() == nullptr) return {};
    TROUPE_ASSIGN(const void* const weight,
                  round(weight_factor_, stream, pass.parameters + weight_));
    return input_gradient_.enqueue(context(), stream.handle(), scratch_, given, weight, 0.0f,
                                   pass.input_gradient());
  }

  Result<const void*> round(const RoundedFactor& factor, CudaStream& stream, const float* from) {
    return factor.enqueue(stream.handle(), scratch_, from);
  }

  DType factors_;
  std::int64_t out_, in_, rows_;
  std::size_t weight_, bias_ = 0;
  bool adds_weight_;
  bool has_bias_ = false;
  ScratchPlaces scratch_;
  ColumnSums bias_sums_;
  RoundedFactor input_factor_, weight_factor_, gradient_factor_;
  Matmul forward_, weight_gradient_, input_gradient_;
};

}  // namespace

MadeKernel make_linear(Context& context, const KernelRequest& request, DType factors) {
  return LinearKernel::make(context, request, factors);
}

}  // namespace troupe::kernels::cuda
