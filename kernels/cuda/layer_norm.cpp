#include <cstddef>
#include <utility>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/column_sums.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/norm_bodies.hpp"

namespace troupe::kernels::cuda {

namespace {

/// Layer norm and RMS norm. The parameters' gradients are sums over runs of rows, which are then
/// added in order.
class LayerNormKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request) {
    auto kernel = std::make_unique<LayerNormKernel>(context, request);
    TROUPE_ASSIGN(kernel->statistics_, context.allocate(2 * kernel->rows_ * sizeof(float)));
    return MadeKernel(std::move(kernel));
  }

  LayerNormKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        weight_(request.offset_of(0)),
        width_(static_cast<std::size_t>(output_.shape[output_.shape.rank() - 1])),
        rows_(output_.floats / width_),
        runs_(rows_),
        scratch_(request.scratch) {
    if (const auto* spec = std::get_if<LayerNorm>(&request.layers[0].spec)) {
      epsilon_ = spec->epsilon;
      centered_ = true;
      bias_ = request.offset_of(1);
    } else {
      epsilon_ = std::get<RmsNorm>(request.layers[0].spec).epsilon;
    }
    partial_ = scratch_.add(2 * runs_.runs * width_ * sizeof(float));
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_output = false, .in_place = true};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each_row(stream.handle(), rows_,
                        NormRow{width_, centered_, epsilon_, pass.parameters + weight_,
                                centered_ ? pass.parameters + bias_ : nullptr, pass.input(),
                                pass.output, means(), inverses()});
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    auto* const dweights = reinterpret_cast<float*>(scratch_.at(partial_));
    float* const dbiases = centered_ ? dweights + runs_.runs * width_ : nullptr;
    // First, as the input's gradient may lie where the output's does.
    TROUPE_TRY(for_each(stream.handle(), runs_.runs * width_,
                        NormColumns{rows_, width_, runs_.rows, pass.input(), means(), inverses(),
                                    pass.output_gradient, dweights, dbiases}));
    TROUPE_TRY(for_each(stream.handle(), width_,
                        SumOfRuns{dweights, runs_.runs, width_, pass.gradients + weight_}));
    if (centered_)
      TROUPE_TRY(for_each(stream.handle(), width_,
                          SumOfRuns{dbiases, runs_.runs, width_, pass.gradients + bias_}));
    if (pass.input_gradient() == nullptr) return {};
    return for_each_row(
        stream.handle(), rows_,
        NormRowBackward{width_, centered_, pass.parameters + weight_, pass.input(), means(),
                        inverses(), pass.output_gradient, pass.input_gradient()});
  }

  float* means() { return floats(statistics_); }
  float* inverses() { return floats(statistics_) + rows_; }

  std::size_t weight_, bias_ = 0;
  float epsilon_ = 0.0f;
  bool centered_ = false;
  std::size_t width_, rows_;
  RowRuns runs_;
  ScratchPlaces scratch_;
  std::size_t partial_ = 0;  ///< in the scratch: of each run, gradients of weight and of bias
  Buffer statistics_;
};

}  // namespace

MadeKernel make_layer_norm(Context& context, const KernelRequest& request) {
  return LayerNormKernel::make(context, request);
}

}  // namespace troupe::kernels::cuda
