#include <cstddef>
#include <utility>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/column_sums.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/norm_bodies.hpp"

namespace troupe::kernels::cuda {

namespace {

class GroupNormKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request) {
    auto kernel = std::make_unique<GroupNormKernel>(context, request);
    TROUPE_ASSIGN(kernel->statistics_, context.allocate(2 * kernel->rows() * sizeof(float)));
    return MadeKernel(std::move(kernel));
  }

  GroupNormKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        batch_(static_cast<std::size_t>(request.batch())),
        channels_(static_cast<std::size_t>(request.input().shape[1])),
        area_(output_.floats / (batch_ * channels_)),
        weight_(request.offset_of(0)),
        bias_(request.offset_of(1)),
        scratch_(request.scratch),
        sums_(batch_, channels_, scratch_) {
    const auto& spec = std::get<GroupNorm>(request.layers[0].spec);
    groups_ = static_cast<std::size_t>(spec.groups);
    epsilon_ = spec.epsilon;
    dweights_ = scratch_.add(batch_ * channels_ * sizeof(float));
    dbiases_ = scratch_.add(batch_ * channels_ * sizeof(float));
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_output = false, .in_place = true};
  }

private:
  std::size_t rows() const { return batch_ * groups_; }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each_row(
        stream.handle(), rows(),
        GroupNormForward{groups_, channels_ / groups_, area_, epsilon_, pass.parameters + weight_,
                         pass.parameters + bias_, pass.input(), pass.output, floats(statistics_),
                         floats(statistics_) + rows()});
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    auto* const dweights = reinterpret_cast<float*>(scratch_.at(dweights_));
    auto* const dbiases = reinterpret_cast<float*>(scratch_.at(dbiases_));
    TROUPE_TRY(for_each_row(
        stream.handle(), rows(),
        GroupNormBackward{groups_, channels_ / groups_, area_, pass.parameters + weight_,
                          pass.input(), floats(statistics_), floats(statistics_) + rows(),
                          pass.output_gradient, pass.input_gradient(), dweights, dbiases}));
    TROUPE_TRY(sums_.enqueue(stream.handle(), scratch_, dweights, pass.gradients + weight_));
    return sums_.enqueue(stream.handle(), scratch_, dbiases, pass.gradients + bias_);
  }

  std::size_t batch_, channels_, area_;
  std::size_t weight_, bias_;
  std::size_t groups_ = 1;
  float epsilon_ = 0.0f;
  ScratchPlaces scratch_;
  ColumnSums sums_;                         ///< over the samples
  std::size_t dweights_ = 0, dbiases_ = 0;  ///< in the scratch, of each sample
  Buffer statistics_;
};

}  // namespace

MadeKernel make_group_norm(Context& context, const KernelRequest& request) {
  return GroupNormKernel::make(context, request);
}

}  // namespace troupe::kernels::cuda
