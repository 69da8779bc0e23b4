#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/batch_norm_bodies.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/internal/batch_norm_sums.hpp"

namespace troupe::kernels::cuda {

namespace {

// Of the layer's parameters.
enum : std::size_t { kWeight, kBias, kRunningMean, kRunningVariance };

/// A batch norm, alone or with the ReLU that follows it: a block of threads for each channel; in
/// training by this pass's batch or, if it is synchronized, by those of all ranks.
class BatchNormKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request) {
    auto kernel = std::make_unique<BatchNormKernel>(context, request);
    if (kernel->training_) {
      TROUPE_ASSIGN(kernel->statistics_,
                    context.allocate(3 * kernel->images_.channels * sizeof(float)));
    }
    return MadeKernel(std::move(kernel));
  }

  BatchNormKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        spec_(std::get<BatchNorm>(request.layers[0].spec)),
        relu_(request.layers.size() > 1),
        training_(request.mode == Mode::training),
        synchronized_(training_ && spec_.synchronized) {
    images_.batch = static_cast<std::size_t>(request.batch());
    images_.channels = static_cast<std::size_t>(request.input().shape[1]);
    images_.area = output_.floats / (images_.batch * images_.channels);
    for (std::size_t i = 0; i < 4; ++i) offsets_[i] = request.offset_of(i);
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_output = relu_, .in_place = true};
  }
  std::size_t sums_over_ranks() const noexcept override {
    return synchronized_ ? BatchNormSums::width(images_.channels) : 0;
  }
  Status check_sums(std::span<const double> sums) const override {
    return BatchNormSums::check(spec_.describe(), sums);
  }

private:
  Status enqueue_forward_sums(const ForwardPass& pass, double* sums, CudaStream& stream) override {
    return for_each_row(stream.handle(), images_.channels,
                        BatchNormSumsForward{images_, pass.input(), sums});
  }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    const float* const weight = pass.parameters + offsets_[kWeight];
    const float* const bias = pass.parameters + offsets_[kBias];
    if (!training_)
      return for_each(stream.handle(), output_.floats,
                      BatchNormInference{images_.channels, images_.area, spec_.epsilon, relu_,
                                         weight, bias, pass.parameters + offsets_[kRunningMean],
                                         pass.parameters + offsets_[kRunningVariance], pass.input(),
                                         pass.output});
    const BatchNormOutput output{images_,     relu_,   weight,      bias,      pass.input(),
                                 pass.output, means(), variances(), inverses()};
    if (synchronized_)
      return for_each_row(
          stream.handle(), images_.channels,
          SynchronizedBatchNormForward{output, spec_.epsilon, pass.sums_over_ranks});
    return for_each_row(stream.handle(), images_.channels, BatchNormForward{output, spec_.epsilon});
  }

  Status enqueue_backward_sums(const BackwardPass& pass, double* sums,
                               CudaStream& stream) override {
    return for_each_row(stream.handle(), images_.channels,
                        BatchNormSumsBackward{gradient_of(pass), pass.gradients + offsets_[kWeight],
                                              pass.gradients + offsets_[kBias], sums});
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (!synchronized_)
      return for_each_row(stream.handle(), images_.channels,
                          BatchNormBackward{gradient_of(pass), pass.gradients + offsets_[kWeight],
                                            pass.gradients + offsets_[kBias]});
    if (pass.input_gradient() == nullptr) return {};
    return for_each_row(stream.handle(), images_.channels,
                        SynchronizedBatchNormBackward{gradient_of(pass), pass.sums_over_ranks});
  }

  Status enqueue_statistics(const StatisticsPass& pass, CudaStream& stream) const override {
    if (!training_) return {};
    const auto n = static_cast<double>(images_.values());
    // Over all ranks they are unbiased already.
    const float unbiased = synchronized_ ? 1.0f : static_cast<float>(n / (n - 1.0));
    return for_each(stream.handle(), images_.channels,
                    BatchNormStatistics{means(), variances(), static_cast<float>(images_.batch),
                                        unbiased, pass.gradients + offsets_[kRunningMean],
                                        pass.gradients + offsets_[kRunningVariance]});
  }

  BatchNormGradient gradient_of(const BackwardPass& pass) const {
    return {images_,
            pass.parameters + offsets_[kWeight],
            pass.input(),
            relu_ ? pass.output : nullptr,
            means(),
            inverses(),
            pass.output_gradient,
            pass.input_gradient()};
  }

  float* means() { return floats(statistics_); }
  const float* means() const { return floats(statistics_); }
  float* variances() { return floats(statistics_) + images_.channels; }
  const float* variances() const { return floats(statistics_) + images_.channels; }
  float* inverses() { return floats(statistics_) + 2 * images_.channels; }
  const float* inverses() const { return floats(statistics_) + 2 * images_.channels; }

  BatchNorm spec_;
  bool relu_, training_, synchronized_;
  Channels images_{};
  std::size_t offsets_[4] = {};
  Buffer statistics_;  ///< of the last forward pass in training
};

}  // namespace

MadeKernel make_batch_norm(Context& context, const KernelRequest& request) {
  const Shape& input = request.input().shape;
  const bool own_batch = !std::get<BatchNorm>(request.layers[0].spec).synchronized;
  if (request.mode == Mode::training && own_batch && input.elements() == input[1])
    return Error{Code::invalid_argument,
                 fmt::format("one value per channel has no variance; a rank's batch of {} at this "
                             "size is too small to train with",
                             to_string(input))};
  return BatchNormKernel::make(context, request);
}

}  // namespace troupe::kernels::cuda
