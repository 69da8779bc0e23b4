#include <cmath>
#include <cstddef>
#include <utility>

#include "kernels/cpu/internal/column_sums.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/cpu/internal/portable.hpp"
#include "kernels/internal/wide_loop.hpp"
#include "kernels/internal/wide_math.hpp"
#include "kernels/internal/wide_rows.hpp"

namespace troupe::kernels::cpu {

// One group of one sample: `channels` runs of `area` elements.

TROUPE_WIDE_LOOP(normalize_group,
                 (std::size_t channels, std::size_t area, float epsilon, const float* x,
                  const float* weight, const float* bias, float* y, float* mean_and_inverse),
                 (channels, area, epsilon, x, weight, bias, y, mean_and_inverse)) {
  const std::size_t n = channels * area;
  const float mean = wide::sum(x, n) / static_cast<float>(n);
  const float variance = wide::squares(x, mean, n) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(variance + epsilon);
  mean_and_inverse[0] = mean;
  mean_and_inverse[1] = inverse;
  for (std::size_t c = 0; c < channels; ++c) {
    const float w = weight[c], b = bias[c];
    TROUPE_INDEPENDENT
    for (std::size_t i = c * area; i < (c + 1) * area; ++i) y[i] = (x[i] - mean) * inverse * w + b;
  }
}

// With z the normalised elements: dweight[c] and dbias[c] are the sample's sums of dy z and dy, and
// dx = (dy weight - mean(dy weight) - z mean(dy weight z)) / deviation.
TROUPE_WIDE_LOOP(normalize_group_backward,
                 (std::size_t channels, std::size_t area, const float* mean_and_inverse,
                  const float* x, const float* weight, const float* dy, float* dx, float* dweight,
                  float* dbias),
                 (channels, area, mean_and_inverse, x, weight, dy, dx, dweight, dbias)) {
  const float mean = mean_and_inverse[0], inverse = mean_and_inverse[1];
  float sum_g = 0.0f, sum_gz = 0.0f;
  for (std::size_t c = 0; c < channels; ++c) {
    const float* const given = dy + c * area;
    const float sum = wide::sum(given, area);
    dbias[c] = sum;
    dweight[c] = (wide::dot(given, x + c * area, area) - mean * sum) * inverse;
    sum_g += weight[c] * dbias[c];
    sum_gz += weight[c] * dweight[c];
  }
  if (dx == nullptr) return;
  const float count = static_cast<float>(channels * area);
  const float mean_g = sum_g / count, mean_gz = sum_gz / count;
  for (std::size_t c = 0; c < channels; ++c) {
    const float w = weight[c];
    TROUPE_INDEPENDENT
    for (std::size_t i = c * area; i < (c + 1) * area; ++i)
      dx[i] = inverse * (dy[i] * w - mean_g - (x[i] - mean) * inverse * mean_gz);
  }
}

namespace {

class GroupNormKernel final : public LayerKernel {
public:
  static MadeKernel make(const KernelRequest& request) {
    auto kernel = std::make_unique<GroupNormKernel>(request);
    TROUPE_ASSIGN(kernel->statistics_,
                  Scratch::zeros(static_cast<Index>(2 * kernel->batch_ * kernel->groups_)));
    TROUPE_ASSIGN(kernel->sums_,
                  Scratch::zeros(static_cast<Index>(2 * kernel->batch_ * kernel->channels_)));
    return MadeKernel(std::move(kernel));
  }

  explicit GroupNormKernel(const KernelRequest& request)
      : threads_(request.threads),
        batch_(static_cast<std::size_t>(request.batch())),
        channels_(static_cast<std::size_t>(request.input().shape[1])),
        weight_(request.offset_of(0)),
        bias_(request.offset_of(1)) {
    const auto& spec = std::get<GroupNorm>(request.layers[0].spec);
    groups_ = static_cast<std::size_t>(spec.groups);
    epsilon_ = spec.epsilon;
    inputs_ = {plain_activation(request.input().shape)};
    output_ = inputs_[0];
    area_ = output_.floats / (batch_ * channels_);
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_output = false, .in_place = true};
  }

  Status forward(const ForwardPass& pass) override {
    each_group([&](const Place& at) {
      normalize_group(channels_ / groups_, area_, epsilon_, pass.input() + at.element,
                      pass.parameters + weight_ + at.channel, pass.parameters + bias_ + at.channel,
                      pass.output + at.element, statistics_.data() + 2 * at.group);
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    float* const dweights = sums_.data();
    float* const dbiases = dweights + batch_ * channels_;
    each_group([&](const Place& at) {
      float* const to = pass.input_gradient();
      normalize_group_backward(channels_ / groups_, area_, statistics_.data() + 2 * at.group,
                               pass.input() + at.element, pass.parameters + weight_ + at.channel,
                               pass.output_gradient + at.element,
                               to == nullptr ? nullptr : to + at.element,
                               dweights + at.element / area_, dbiases + at.element / area_);
    });
    column_sums(dweights, batch_, channels_, pass.gradients + weight_, /*add=*/false, threads_);
    column_sums(dbiases, batch_, channels_, pass.gradients + bias_, /*add=*/false, threads_);
    return {};
  }

private:
  struct Place {
    std::size_t group;    ///< in the batch
    std::size_t channel;  ///< its first, in a sample
    std::size_t element;  ///< its first, in the batch
  };
  template <class Body>
  void each_group(const Body& body) {
    const std::size_t channels = channels_ / groups_;
    parallel_each(threads_, batch_ * groups_, [&](std::size_t group, std::size_t) {
      body(Place{group, group % groups_ * channels, group * channels * area_});
    });
  }

  int threads_;
  std::size_t batch_, channels_;
  std::size_t weight_, bias_;
  std::size_t groups_ = 1, area_ = 1;
  float epsilon_ = 0.0f;
  Scratch statistics_;  ///< mean and inverse deviation of each group
  Scratch sums_;        ///< each sample's gradients of weight and bias
};

}  // namespace

MadeKernel make_group_norm(const KernelRequest& request) {
  return GroupNormKernel::make(request);
}

}  // namespace troupe::kernels::cpu
