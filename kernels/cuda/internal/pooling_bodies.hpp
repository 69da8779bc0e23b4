#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/internal/host_device.hpp"

namespace troupe::kernels::cuda {

/// Windows over images [planes, height, width], where planes are samples times channels.
struct Windows {
  std::int64_t height, width;          ///< of the input
  std::int64_t out_height, out_width;  ///< of the output
  std::int64_t kernel_height, kernel_width;
  std::int64_t stride_height, stride_width;
  std::int64_t padding;

  /// A run of positions along one axis.
  struct Range {
    std::int64_t begin, end;
  };
  /// The input's positions of window `at` along an axis of `size`.
  TROUPE_HOST_DEVICE static Range inside(std::int64_t at, std::int64_t stride, std::int64_t kernel,
                                         std::int64_t padding, std::int64_t size) {
    const std::int64_t begin = at * stride - padding, end = begin + kernel;
    return {begin > 0 ? begin : 0, end < size ? end : size};
  }
  /// The windows that hold position `at`, of `count` windows.
  TROUPE_HOST_DEVICE static Range covering(std::int64_t at, std::int64_t stride,
                                           std::int64_t kernel, std::int64_t padding,
                                           std::int64_t count) {
    const std::int64_t shifted = at + padding;
    const std::int64_t begin = shifted < kernel ? 0 : (shifted - kernel) / stride + 1;
    const std::int64_t end = shifted / stride + 1;
    return {begin, end < count ? end : count};
  }
};

/// Where an element is: its plane, row and column.
struct PixelPlace {
  std::int64_t plane, row, column;
  TROUPE_HOST_DEVICE PixelPlace(std::size_t i, std::int64_t height, std::int64_t width) {
    const auto at = static_cast<std::int64_t>(i);
    column = at % width;
    row = at / width % height;
    plane = at / width / height;
  }
};

/// The greatest of a window, the first of equals (a NaN if there is one), and where in the plane it
/// was.
struct MaxPoolingForward {
  Windows windows;
  const float* x;
  float* y;
  std::int32_t* chosen;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const Windows& w = windows;
    const PixelPlace at(i, w.out_height, w.out_width);
    const auto rows =
        Windows::inside(at.row, w.stride_height, w.kernel_height, w.padding, w.height);
    const auto columns =
        Windows::inside(at.column, w.stride_width, w.kernel_width, w.padding, w.width);
    const float* const plane = x + at.plane * w.height * w.width;
    std::int64_t best = rows.begin * w.width + columns.begin;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t c = columns.begin; c < columns.end; ++c) {
        const float value = plane[r * w.width + c];
        const bool first_nan = value != value && plane[best] == plane[best];
        if (value > plane[best] || first_nan) best = r * w.width + c;
      }
    y[i] = plane[best];
    chosen[i] = static_cast<std::int32_t>(best);
  }
};

/// dx[i] = the sum of dy of the windows whose greatest it was, in the windows' order.
struct MaxPoolingBackward {
  Windows windows;
  const std::int32_t* chosen;
  const float* dy;
  float* dx;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const Windows& w = windows;
    const PixelPlace at(i, w.height, w.width);
    const auto rows =
        Windows::covering(at.row, w.stride_height, w.kernel_height, w.padding, w.out_height);
    const auto columns =
        Windows::covering(at.column, w.stride_width, w.kernel_width, w.padding, w.out_width);
    const std::int64_t first = at.plane * w.out_height * w.out_width;
    const auto here = static_cast<std::int32_t>(at.row * w.width + at.column);
    float sum = 0.0f;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t c = columns.begin; c < columns.end; ++c) {
        const std::int64_t window = first + r * w.out_width + c;
        if (chosen[window] == here) sum += dy[window];
      }
    dx[i] = sum;
  }
};

/// The mean of a window, row by row; what is padded counts as zeros.
struct AveragePoolingForward {
  Windows windows;
  const float* x;
  float* y;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const Windows& w = windows;
    const PixelPlace at(i, w.out_height, w.out_width);
    const auto rows =
        Windows::inside(at.row, w.stride_height, w.kernel_height, w.padding, w.height);
    const auto columns =
        Windows::inside(at.column, w.stride_width, w.kernel_width, w.padding, w.width);
    const float* const plane = x + at.plane * w.height * w.width;
    float sum = 0.0f;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t c = columns.begin; c < columns.end; ++c) sum += plane[r * w.width + c];
    y[i] = sum / static_cast<float>(w.kernel_height * w.kernel_width);
  }
};

/// dx[i] = the sum of dy of the windows that it is in, over a window's size.
struct AveragePoolingBackward {
  Windows windows;
  const float* dy;
  float* dx;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const Windows& w = windows;
    const PixelPlace at(i, w.height, w.width);
    const auto rows =
        Windows::covering(at.row, w.stride_height, w.kernel_height, w.padding, w.out_height);
    const auto columns =
        Windows::covering(at.column, w.stride_width, w.kernel_width, w.padding, w.out_width);
    const std::int64_t first = at.plane * w.out_height * w.out_width;
    float sum = 0.0f;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t c = columns.begin; c < columns.end; ++c)
        sum += dy[first + r * w.out_width + c];
    dx[i] = sum / static_cast<float>(w.kernel_height * w.kernel_width);
  }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_POOLING_BODIES(each)                                                              \
  each(troupe::kernels::cuda::MaxPoolingForward) each(troupe::kernels::cuda::MaxPoolingBackward) \
      each(troupe::kernels::cuda::AveragePoolingForward)                                         \
          each(troupe::kernels::cuda::AveragePoolingBackward)
