#pragma once

#include <cstddef>

#include "kernels/cuda/internal/group.hpp"
#include "kernels/cuda/internal/spread.hpp"
#include "kernels/host_device.hpp"

namespace troupe::kernels::cuda {

/// A row of layer norm, or of the root mean square (`centered` off, `bias` null): y = (x - mean) /
/// deviation * weight + bias.
struct NormRow {
  std::size_t width;
  bool centered;
  float epsilon;
  const float* weight;
  const float* bias;
  const float* x;
  float* y;
  float* means;     ///< of the rows
  float* inverses;  ///< of their deviations
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t row) const {
    const float* const from = x + row * width;
    float* const to = y + row * width;
    const Spread spread =
        Spread::of(group, width, epsilon, centered, [&](std::size_t i) { return from[i]; });
    group.once([&] {
      means[row] = spread.mean;
      inverses[row] = spread.inverse;
    });
    group.each(width, [&](std::size_t i) {
      const float scaled = (from[i] - spread.mean) * spread.inverse * weight[i];
      to[i] = bias != nullptr ? scaled + bias[i] : scaled;
    });
  }
};

/// With z the normalised row and g = dy * weight: dx = (g - mean(g) - z mean(g z)) / deviation,
/// without mean(g) where it was not centered.
struct NormRowBackward {
  std::size_t width;
  bool centered;
  const float* weight;
  const float* x;
  const float* means;
  const float* inverses;
  const float* dy;
  float* dx;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t row) const {
    const float* const from = x + row * width;
    const float* const given = dy + row * width;
    float* const to = dx + row * width;
    const float count = static_cast<float>(width), mean = means[row], inverse = inverses[row];
    const auto z = [&](std::size_t i) { return (from[i] - mean) * inverse; };
    const auto g = [&](std::size_t i) { return given[i] * weight[i]; };
    const float mean_g = centered ? group.sum(width, g) / count : 0.0f;
    const float mean_gz = group.sum(width, [&](std::size_t i) { return g(i) * z(i); }) / count;
    group.each(width, [&](std::size_t i) { to[i] = inverse * (g(i) - mean_g - z(i) * mean_gz); });
  }
};

/// The gradients of weight and bias over a run of rows: sums of dy z and dy, first row first.
struct NormColumns {
  std::size_t rows, width;
  std::size_t run;  ///< rows of a run
  const float* x;
  const float* means;
  const float* inverses;
  const float* dy;
  float* dweights;  ///< [runs, width]
  float* dbiases;   ///< as well, or null
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t begin = i / width * run, c = i % width;
    const std::size_t end = begin + run < rows ? begin + run : rows;
    float dweight = 0.0f, dbias = 0.0f;
    for (std::size_t row = begin; row < end; ++row) {
      const float given = dy[row * width + c];
      dweight += given * ((x[row * width + c] - means[row]) * inverses[row]);
      dbias += given;
    }
    dweights[i] = dweight;
    if (dbiases != nullptr) dbiases[i] = dbias;
  }
};

/// Group norm of one group of one sample: `channels` runs of `area` elements.
struct GroupNormForward {
  std::size_t groups, channels, area;
  float epsilon;
  const float* weight;
  const float* bias;
  const float* x;
  float* y;
  float* means;
  float* inverses;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t at) const {
    const std::size_t n = channels * area, first = at % groups * channels;
    const float* const from = x + at * n;
    float* const to = y + at * n;
    const Spread spread =
        Spread::of(group, n, epsilon, /*centered=*/true, [&](std::size_t i) { return from[i]; });
    group.once([&] {
      means[at] = spread.mean;
      inverses[at] = spread.inverse;
    });
    group.each(n, [&](std::size_t i) {
      const std::size_t c = first + i / area;
      to[i] = (from[i] - spread.mean) * spread.inverse * weight[c] + bias[c];
    });
  }
};

/// With z the normalised elements: dweights and dbiases [sample, channel] are the sample's sums of
/// dy z and dy, and dx (unless null) = (dy weight - mean(dy weight) - z mean(dy weight z)) /
/// deviation.
struct GroupNormBackward {
  std::size_t groups, channels, area;
  const float* weight;
  const float* x;
  const float* means;
  const float* inverses;
  const float* dy;
  float* dx;
  float* dweights;
  float* dbiases;
  TROUPE_HOST_DEVICE void operator()(Group& group, std::size_t at) const {
    const std::size_t n = channels * area, first = at % groups * channels;
    const float mean = means[at], inverse = inverses[at];
    const float* const from = x + at * n;
    const float* const given = dy + at * n;
    float sum_g = 0.0f, sum_gz = 0.0f;
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t begin = c * area;
      const float dbias = group.sum(area, [&](std::size_t i) { return given[begin + i]; });
      const float dweight = group.sum(area, [&](std::size_t i) {
        return given[begin + i] * ((from[begin + i] - mean) * inverse);
      });
      group.once([&] {
        dbiases[at * channels + c] = dbias;
        dweights[at * channels + c] = dweight;
      });
      sum_g += weight[first + c] * dbias;
      sum_gz += weight[first + c] * dweight;
    }
    if (dx == nullptr) return;
    const float count = static_cast<float>(n);
    const float mean_g = sum_g / count, mean_gz = sum_gz / count;
    float* const to = dx + at * n;
    group.each(n, [&](std::size_t i) {
      to[i] = inverse *
              (given[i] * weight[first + i / area] - mean_g - (from[i] - mean) * inverse * mean_gz);
    });
  }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_NORM_ELEMENT_BODIES(each) each(troupe::kernels::cuda::NormColumns)
#define TROUPE_NORM_ROW_BODIES(each)                                                \
  each(troupe::kernels::cuda::NormRow) each(troupe::kernels::cuda::NormRowBackward) \
      each(troupe::kernels::cuda::GroupNormForward) each(troupe::kernels::cuda::GroupNormBackward)
