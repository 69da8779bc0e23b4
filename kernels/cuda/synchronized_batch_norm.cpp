#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/batch_norm_bodies.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/internal/batch_norm_sums.hpp"

namespace troupe::kernels::cuda {

namespace {

// Of the layer's parameters.
enum : std::size_t { kWeight, kBias, kRunningMean, kRunningVariance };

/// A batch norm in training over the batches of all ranks, alone or with the ReLU that follows it:
/// a block of threads for each channel, before the ranks' sums are added and after.
class SynchronizedBatchNormKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request) {
    auto kernel = std::make_unique<SynchronizedBatchNormKernel>(context, request);
    TROUPE_ASSIGN(kernel->statistics_, context.allocate(3 * kernel->channels_ * sizeof(float)));
    return MadeKernel(std::move(kernel));
  }

  SynchronizedBatchNormKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        relu_(request.layers.size() > 1),
        batch_(static_cast<std::size_t>(request.batch())),
        channels_(static_cast<std::size_t>(request.input().shape[1])),
        area_(output_.floats / (batch_ * channels_)),
        epsilon_(std::get<BatchNorm>(request.layers[0].spec).epsilon),
        name_(describe(request.layers[0].spec)) {
    for (std::size_t i = 0; i < 4; ++i) offsets_[i] = request.offset_of(i);
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_output = relu_, .in_place = true};
  }
  std::size_t sums_over_ranks() const noexcept override { return BatchNormSums::width(channels_); }
  Status check_sums(std::span<const double> sums) const override {
    return BatchNormSums::check(name_, sums);
  }

private:
  Status enqueue_forward_sums(const ForwardPass& pass, double* sums, CudaStream& stream) override {
    return for_each_row(stream.handle(), channels_,
                        BatchNormSumsForward{batch_, channels_, area_, pass.input(), sums});
  }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each_row(stream.handle(), channels_,
                        SynchronizedBatchNormForward{
                            batch_, channels_, area_, epsilon_, relu_, pass.sums_over_ranks,
                            pass.parameters + offsets_[kWeight], pass.parameters + offsets_[kBias],
                            pass.input(), pass.output, means(), variances(), inverses()});
  }

  Status enqueue_backward_sums(const BackwardPass& pass, double* sums,
                               CudaStream& stream) override {
    return for_each_row(stream.handle(), channels_,
                        BatchNormSumsBackward{
                            batch_, channels_, area_, pass.input(), relu_ ? pass.output : nullptr,
                            means(), inverses(), pass.output_gradient, sums,
                            pass.gradients + offsets_[kWeight], pass.gradients + offsets_[kBias]});
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    return for_each_row(
        stream.handle(), channels_,
        SynchronizedBatchNormBackward{batch_, channels_, area_, pass.sums_over_ranks,
                                      pass.parameters + offsets_[kWeight], pass.input(),
                                      relu_ ? pass.output : nullptr, means(), inverses(),
                                      pass.output_gradient, pass.input_gradient()});
  }

  Status enqueue_statistics(const StatisticsPass& pass, CudaStream& stream) const override {
    return for_each(stream.handle(), channels_,
                    BatchNormStatistics{means(), variances(), static_cast<float>(batch_), 1.0f,
                                        pass.gradients + offsets_[kRunningMean],
                                        pass.gradients + offsets_[kRunningVariance]});
  }

  float* means() { return floats(statistics_); }
  const float* means() const { return floats(statistics_); }
  float* variances() { return floats(statistics_) + channels_; }
  const float* variances() const { return floats(statistics_) + channels_; }
  float* inverses() { return floats(statistics_) + 2 * channels_; }

  bool relu_;
  std::size_t batch_, channels_, area_;
  float epsilon_;
  std::string name_;
  std::size_t offsets_[4] = {};
  Buffer statistics_;  ///< of the last forward pass; variances are unbiased
};

}  // namespace

MadeKernel make_synchronized_batch_norm(Context& context, const KernelRequest& request) {
  return SynchronizedBatchNormKernel::make(context, request);
}

}  // namespace troupe::kernels::cuda
