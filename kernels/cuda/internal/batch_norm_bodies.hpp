#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/cuda/internal/group.hpp"
#include "kernels/cuda/internal/spread.hpp"
#include "kernels/host_device.hpp"

// Sums over the channels of images [batch, channels, area].
namespace troupe::kernels::cuda {

/// Where the elements of a channel lie: a run of `area` in each sample.
struct Scattered {
  std::size_t area;    ///< floats one after the other
  std::size_t stride;  ///< floats from one run to the next
  TROUPE_HOST_DEVICE std::size_t operator()(std::size_t i) const {
    return i / area * stride + i % area;
  }
};

/// Batch norm of one channel in training, with the ReLU that follows it if there is one.
struct BatchNormForward {
  std::size_t batch, channels, area;
  float epsilon;
  bool relu;
  const float* weight;
  const float* bias;
  const float* x;
  float* y;
  float* means;
  float* variances;  ///< biased
  float* inverses;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const std::size_t n = batch * area, first = channel * area;
    const Scattered at{area, channels * area};
    const Spread spread = Spread::of(group, n, epsilon, /*centered=*/true,
                                     [&](std::size_t i) { return x[first + at(i)]; });
    group.once([&] {
      means[channel] = spread.mean;
      variances[channel] = spread.variance;
      inverses[channel] = spread.inverse;
    });
    const float w = weight[channel], b = bias[channel];
    group.each(n, [&](std::size_t i) {
      const float value = (x[first + at(i)] - spread.mean) * spread.inverse * w + b;
      y[first + at(i)] = relu && value <= 0.0f ? 0.0f : value;
    });
  }
};

/// With z the normalised elements and g = dy where the ReLU was open: dbias = sum of g, dweight =
/// sum of g z, dx (unless null) = weight / deviation (g - dbias / n - z dweight / n).
struct BatchNormBackward {
  std::size_t batch, channels, area;
  const float* weight;
  const float* x;
  const float* y;  ///< with a ReLU, else null
  const float* means;
  const float* inverses;
  const float* dy;
  float* dx;
  float* dweight;
  float* dbias;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const std::size_t n = batch * area, first = channel * area;
    const Scattered at{area, channels * area};
    const float mean = means[channel], inverse = inverses[channel];
    const auto g = [&](std::size_t i) {
      const std::size_t element = first + at(i);
      return y != nullptr && y[element] <= 0.0f ? 0.0f : dy[element];
    };
    const auto z = [&](std::size_t i) { return (x[first + at(i)] - mean) * inverse; };
    const float sum_g = group.sum(n, g);
    const float sum_gz = group.sum(n, [&](std::size_t i) { return g(i) * z(i); });
    group.once([&] {
      dbias[channel] = sum_g;
      dweight[channel] = sum_gz;
    });
    if (dx == nullptr) return;
    const float count = static_cast<float>(n), factor = weight[channel] * inverse;
    group.each(n, [&](std::size_t i) {
      const float value = factor * (g(i) - sum_g / count - z(i) * (sum_gz / count));
      dx[first + at(i)] = value;
    });
  }
};

/// What a channel of a rank adds to its sums over all ranks, forward (kernels/internal/
/// batch_norm_sums.hpp).
struct BatchNormSumsForward {
  std::size_t batch, channels, area;
  const float* x;
  double* sums;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const std::size_t n = batch * area, first = channel * area;
    const Scattered at{area, channels * area};
    const auto value = [&](std::size_t i) { return static_cast<double>(x[first + at(i)]); };
    const double sum = group.sum(n, value);
    const double squares = group.sum(n, [&](std::size_t i) { return value(i) * value(i); });
    group.once([&] {
      if (channel == 0) sums[0] = static_cast<double>(n);
      sums[1 + channel] = sum;
      sums[1 + channels + channel] = squares;
    });
  }
};

/// BatchNormForward by the sums of all ranks.
struct SynchronizedBatchNormForward {
  std::size_t batch, channels, area;
  float epsilon;
  bool relu;
  const double* sums;
  const float* weight;
  const float* bias;
  const float* x;
  float* y;
  float* means;
  float* variances;  ///< unbiased; NaN of a single value
  float* inverses;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const std::size_t n = batch * area, first = channel * area;
    const Scattered at{area, channels * area};
    const double count = sums[0], exact = sums[1 + channel] / count;
    const double spread = sums[1 + channels + channel] / count - exact * exact;
    const double variance = spread < 0.0 ? 0.0 : spread;
    const float mean = static_cast<float>(exact);
    const float inverse =
        static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(epsilon)));
    group.once([&] {
      means[channel] = mean;
      variances[channel] = static_cast<float>(variance * (count / (count - 1.0)));
      inverses[channel] = inverse;
    });
    const float w = weight[channel], b = bias[channel];
    group.each(n, [&](std::size_t i) {
      const float value = (x[first + at(i)] - mean) * inverse * w + b;
      y[first + at(i)] = relu && value <= 0.0f ? 0.0f : value;
    });
  }
};

/// The gradients of weight and bias, and what the channel adds to its sums over all ranks,
/// backward.
struct BatchNormSumsBackward {
  std::size_t batch, channels, area;
  const float* x;
  const float* y;  ///< with a ReLU, else null
  const float* means;
  const float* inverses;
  const float* dy;
  double* sums;
  float* dweight;
  float* dbias;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const std::size_t n = batch * area, first = channel * area;
    const Scattered at{area, channels * area};
    const float mean = means[channel], inverse = inverses[channel];
    const auto g = [&](std::size_t i) {
      const std::size_t element = first + at(i);
      return static_cast<double>(y != nullptr && y[element] <= 0.0f ? 0.0f : dy[element]);
    };
    const double sum_g = group.sum(n, g);
    const double sum_gz = group.sum(n, [&](std::size_t i) {
      return g(i) * static_cast<double>((x[first + at(i)] - mean) * inverse);
    });
    group.once([&] {
      if (channel == 0) sums[0] = static_cast<double>(n);
      sums[1 + channel] = sum_g;
      sums[1 + channels + channel] = sum_gz;
      dbias[channel] = static_cast<float>(sum_g);
      dweight[channel] = static_cast<float>(sum_gz);
    });
  }
};

/// BatchNormBackward's dx by the sums of all ranks.
struct SynchronizedBatchNormBackward {
  std::size_t batch, channels, area;
  const double* sums;
  const float* weight;
  const float* x;
  const float* y;  ///< with a ReLU, else null
  const float* means;
  const float* inverses;
  const float* dy;
  float* dx;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const std::size_t n = batch * area, first = channel * area;
    const Scattered at{area, channels * area};
    const float mean = means[channel], inverse = inverses[channel];
    const float factor = weight[channel] * inverse;
    const float mean_g = static_cast<float>(sums[1 + channel] / sums[0]);
    const float mean_gz = static_cast<float>(sums[1 + channels + channel] / sums[0]);
    group.each(n, [&](std::size_t i) {
      const std::size_t element = first + at(i);
      const float g = y != nullptr && y[element] <= 0.0f ? 0.0f : dy[element];
      dx[element] = factor * (g - mean_g - (x[element] - mean) * inverse * mean_gz);
    });
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
  std::size_t batch, channels, area;
  const float* x;
  float* sums;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t channel) const {
    const Scattered at{area, channels * area};
    const float sum =
        group.sum(batch * area, [&](std::size_t i) { return x[channel * area + at(i)]; });
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
