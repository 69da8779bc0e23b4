#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/batch_norm_bodies.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

namespace {

// Of the layer's parameters.
enum : std::size_t { kWeight, kBias, kRunningMean, kRunningVariance };

/// A batch norm, alone or with the ReLU that follows it: a block of threads for each channel.
class BatchNormKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request) {
    auto kernel = std::make_unique<BatchNormKernel>(context, request);
    if (kernel->training_) {
      TROUPE_ASSIGN(kernel->statistics_, context.allocate(3 * kernel->channels_ * sizeof(float)));
    }
    return MadeKernel(std::move(kernel));
  }

  BatchNormKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        relu_(request.layers.size() > 1),
        training_(request.mode == Mode::training),
        batch_(static_cast<std::size_t>(request.batch())),
        channels_(static_cast<std::size_t>(request.input().shape[1])),
        area_(output_.floats / (batch_ * channels_)),
        epsilon_(std::get<BatchNorm>(request.layers[0].spec).epsilon) {
    for (std::size_t i = 0; i < 4; ++i) offsets_[i] = request.offset_of(i);
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_output = relu_, .in_place = true};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    const float* const weight = pass.parameters + offsets_[kWeight];
    const float* const bias = pass.parameters + offsets_[kBias];
    if (!training_)
      return for_each(stream.handle(), output_.floats,
                      BatchNormInference{channels_, area_, epsilon_, relu_, weight, bias,
                                         pass.parameters + offsets_[kRunningMean],
                                         pass.parameters + offsets_[kRunningVariance], pass.input(),
                                         pass.output});
    return for_each_row(
        stream.handle(), channels_,
        BatchNormForward{batch_, channels_, area_, epsilon_, relu_, weight, bias, pass.input(),
                         pass.output, means(), variances(), inverses()});
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    return for_each_row(
        stream.handle(), channels_,
        BatchNormBackward{batch_, channels_, area_, pass.parameters + offsets_[kWeight],
                          pass.input(), relu_ ? pass.output : nullptr, means(), inverses(),
                          pass.output_gradient, pass.input_gradient(),
                          pass.gradients + offsets_[kWeight], pass.gradients + offsets_[kBias]});
  }

  Status enqueue_statistics(const StatisticsPass& pass, CudaStream& stream) const override {
    if (!training_) return {};
    const auto n = static_cast<double>(batch_ * area_);
    return for_each(stream.handle(), channels_,
                    BatchNormStatistics{means(), variances(), static_cast<float>(batch_),
                                        static_cast<float>(n / (n - 1.0)),
                                        pass.gradients + offsets_[kRunningMean],
                                        pass.gradients + offsets_[kRunningVariance]});
  }

  float* means() { return floats(statistics_); }
  const float* means() const { return floats(statistics_); }
  float* variances() { return floats(statistics_) + channels_; }
  const float* variances() const { return floats(statistics_) + channels_; }
  float* inverses() { return floats(statistics_) + 2 * channels_; }

  bool relu_, training_;
  std::size_t batch_, channels_, area_;
  float epsilon_;
  std::size_t offsets_[4] = {};
  Buffer statistics_;  ///< of the last forward pass in training
};

}  // namespace

MadeKernel make_batch_norm(Context& context, const KernelRequest& request) {
  const Shape& input = request.input().shape;
  if (request.mode == Mode::training && input.elements() == input[1])
    return Error{Code::invalid_argument,
                 fmt::format("one value per channel has no variance; a rank's batch of {} at this "
                             "size is too small to train with",
                             to_string(input))};
  return BatchNormKernel::make(context, request);
}

}  // namespace troupe::kernels::cuda
