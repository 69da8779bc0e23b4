#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/cuda/internal/group.hpp"
#include "kernels/cuda/internal/spread.hpp"
#include "kernels/host_device.hpp"

// Sums over the channels of images [batch, channels, area].
namespace troupe::kernels::cuda {

/// Images, and where their channels' values lie: a run of `area` in each sample.
struct Channels {
  std::size_t batch, channels, area;
  /// Of one channel.
  TROUPE_HOST_DEVICE std::size_t values() const { return batch * area; }
  /// Value `i` of a channel.
  TROUPE_HOST_DEVICE std::size_t at(std::size_t channel, std::size_t i) const {
    return (i / area * channels + channel) * area + i % area;
  }
};

/// What a batch norm in training writes, with the ReLU that follows it if there is one.
struct BatchNormOutput {
  Channels images;
  bool relu;
  const float* weight;
  const float* bias;
  const float* x;
  float* y;
  float* means;
  float* variances;  ///< biased of a rank's own batch; unbiased of all ranks', NaN of one value
  float* inverses;
  TROUPE_HOST_DEVICE void write(Group& group, std::size_t channel, float mean, float variance,
                                float inverse) const {
    group.once([&] {
      means[channel] = mean;
      variances[channel] = variance;
      inverses[channel] = inverse;
    });
    const float w = weight[channel], b = bias[channel];
    group.each(images.values(), [&](std::size_t i) {
      const std::size_t at = images.at(channel, i);
      const float value = (x[at] - mean) * inverse * w + b;
      y[at] = relu && value <= 0.0f ? 0.0f : value;
    });
  }
};

/// Batch norm of one channel by its own batch.
struct BatchNormForward {
  BatchNormOutput output;
  float epsilon;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const Spread spread =
        Spread::of(group, output.images.values(), epsilon, /*centered=*/true,
                   [&](std::size_t i) { return output.x[output.images.at(channel, i)]; });
    output.write(group, channel, spread.mean, spread.variance, spread.inverse);
  }
};

/// What a channel of a rank adds to its sums over all ranks, forward (kernels/internal/
/// batch_norm_sums.hpp).
struct BatchNormSumsForward {
  Channels images;
  const float* x;
  double* sums;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const std::size_t n = images.values();
    const auto value = [&](std::size_t i) { return static_cast<double>(x[images.at(channel, i)]); };
    const double sum = group.sum(n, value);
    const double squares = group.sum(n, [&](std::size_t i) { return value(i) * value(i); });
    group.once([&] {
      if (channel == 0) sums[0] = static_cast<double>(n);
      sums[1 + channel] = sum;
      sums[1 + images.channels + channel] = squares;
    });
  }
};

/// Batch norm of one channel by the sums of all ranks.
struct SynchronizedBatchNormForward {
  BatchNormOutput output;
  float epsilon;
  const double* sums;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const double count = sums[0], mean = sums[1 + channel] / count;
    const double spread = sums[1 + output.images.channels + channel] / count - mean * mean;
    const double variance = spread < 0.0 ? 0.0 : spread;
    const double inverse = 1.0 / std::sqrt(variance + static_cast<double>(epsilon));
    output.write(group, channel, static_cast<float>(mean),
                 static_cast<float>(variance * (count / (count - 1.0))),
                 static_cast<float>(inverse));
  }
};

/// What the backward pass of a batch norm goes by. With z the normalised elements and g = dy where
/// the ReLU was open: dx = weight / deviation (g - mean(g) - z mean(g z)).
struct BatchNormGradient {
  Channels images;
  const float* weight;
  const float* x;
  const float* y;  ///< with a ReLU, else null
  const float* means;
  const float* inverses;
  const float* dy;
  float* dx;  ///< or null
  TROUPE_HOST_DEVICE float g(std::size_t at) const {
    return y != nullptr && y[at] <= 0.0f ? 0.0f : dy[at];
  }
  TROUPE_HOST_DEVICE float z(std::size_t channel, std::size_t at) const {
    return (x[at] - means[channel]) * inverses[channel];
  }
  TROUPE_HOST_DEVICE void write(Group& group, std::size_t channel, float mean_g,
                                float mean_gz) const {
    const float factor = weight[channel] * inverses[channel];
    group.each(images.values(), [&](std::size_t i) {
      const std::size_t at = images.at(channel, i);
      dx[at] = factor * (g(at) - mean_g - z(channel, at) * mean_gz);
    });
  }
};

/// dbias = sum of g, dweight = sum of g z, and dx, of one channel by its own batch.
struct BatchNormBackward {
  BatchNormGradient gradient;
  float* dweight;
  float* dbias;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const std::size_t n = gradient.images.values();
    const auto at = [&](std::size_t i) { return gradient.images.at(channel, i); };
    const float sum_g = group.sum(n, [&](std::size_t i) { return gradient.g(at(i)); });
    const float sum_gz =
        group.sum(n, [&](std::size_t i) { return gradient.g(at(i)) * gradient.z(channel, at(i)); });
    group.once([&] {
      dbias[channel] = sum_g;
      dweight[channel] = sum_gz;
    });
    if (gradient.dx == nullptr) return;
    const float count = static_cast<float>(n);
    gradient.write(group, channel, sum_g / count, sum_gz / count);
  }
};

/// dbias and dweight of a rank, and what the channel adds to its sums over all ranks, backward.
struct BatchNormSumsBackward {
  BatchNormGradient gradient;
  float* dweight;
  float* dbias;
  double* sums;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const std::size_t n = gradient.images.values();
    const auto g = [&](std::size_t i) {
      return static_cast<double>(gradient.g(gradient.images.at(channel, i)));
    };
    const double sum_g = group.sum(n, g);
    const double sum_gz = group.sum(n, [&](std::size_t i) {
      return g(i) * static_cast<double>(gradient.z(channel, gradient.images.at(channel, i)));
    });
    group.once([&] {
      if (channel == 0) sums[0] = static_cast<double>(n);
      sums[1 + channel] = sum_g;
      sums[1 + gradient.images.channels + channel] = sum_gz;
      dbias[channel] = static_cast<float>(sum_g);
      dweight[channel] = static_cast<float>(sum_gz);
    });
  }
};

/// dx by the sums of all ranks.
struct SynchronizedBatchNormBackward {
  BatchNormGradient gradient;
  const double* sums;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    gradient.write(group, channel, static_cast<float>(sums[1 + channel] / sums[0]),
                   static_cast<float>(sums[1 + gradient.images.channels + channel] / sums[0]));
  }
};

/// Batch norm at inference, by the running statistics.
struct BatchNormInference {
  std::size_t channels, area;
  float epsilon;
  bool relu;
  const float* weight;
  const float* bias;
  const float* mean;
  const float* variance;
  const float* x;
  float* y;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t c = i / area % channels;
    const float inverse = 1.0f / std::sqrt(variance[c] + epsilon);
    const float value = (x[i] - mean[c]) * inverse * weight[c] + bias[c];
    y[i] = relu && value <= 0.0f ? 0.0f : value;
  }
};

/// What a batch adds to the running statistics, times the batch.
struct BatchNormStatistics {
  const float* means;
  const float* variances;
  float batch;
  float unbiased;  ///< n / (n - 1)
  float* mean_sums;
  float* variance_sums;
  TROUPE_HOST_DEVICE void operator()(std::size_t c) const {
    mean_sums[c] = batch * means[c];
    variance_sums[c] = batch * (variances[c] * unbiased);
  }
};

/// The sum of each channel of images: the gradient of a convolution's bias.
struct ChannelSums {
  Channels images;
  const float* x;
  float* sums;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const float sum =
        group.sum(images.values(), [&](std::size_t i) { return x[images.at(channel, i)]; });
    group.once([&] { sums[channel] = sum; });
  }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_BATCH_NORM_ELEMENT_BODIES(each) \
  each(troupe::kernels::cuda::BatchNormInference) each(troupe::kernels::cuda::BatchNormStatistics)
#define TROUPE_BATCH_NORM_ROW_BODIES(each)                                                     \
  each(troupe::kernels::cuda::BatchNormForward) each(troupe::kernels::cuda::BatchNormBackward) \
      each(troupe::kernels::cuda::BatchNormSumsForward)                                        \
          each(troupe::kernels::cuda::SynchronizedBatchNormForward)                            \
              each(troupe::kernels::cuda::BatchNormSumsBackward)                               \
                  each(troupe::kernels::cuda::SynchronizedBatchNormBackward)                   \
                      each(troupe::kernels::cuda::ChannelSums)
