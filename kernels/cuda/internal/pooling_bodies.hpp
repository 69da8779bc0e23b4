#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/host_device.hpp"

namespace troupe::kernels::cuda {

/// A run of positions along one axis.
struct AxisRange {
  std::int64_t begin, end;
};

/// One axis of images of `size` elements, with `count` windows of one size.
struct StridedAxis {
  std::int64_t size, count;
  std::int64_t kernel, stride, padding;

  /// The elements of window `at`.
  TROUPE_HOST_DEVICE AxisRange inside(std::int64_t at) const {
    const std::int64_t begin = at * stride - padding, end = begin + kernel;
    return {begin > 0 ? begin : 0, end < size ? end : size};
  }
  /// The windows that hold element `at`.
  TROUPE_HOST_DEVICE AxisRange covering(std::int64_t at) const {
    const std::int64_t shifted = at + padding;
    const std::int64_t begin = shifted < kernel ? 0 : (shifted - kernel) / stride + 1;
    const std::int64_t end = shifted / stride + 1;
    return {begin, end < count ? end : count};
  }
  /// What a window's mean divides by along the axis: padded elements count.
  TROUPE_HOST_DEVICE std::int64_t length(std::int64_t) const { return kernel; }
};

/// Likewise with `count` windows that make up the axis, as AdaptivePooling says.
struct AdaptiveAxis {
  std::int64_t size, count;

  TROUPE_HOST_DEVICE AxisRange inside(std::int64_t at) const { return parts(at, size, count); }
  /// i size / count <= at < (i + 1) size / count, rounded as they are, solved for i.
  TROUPE_HOST_DEVICE AxisRange covering(std::int64_t at) const { return parts(at, count, size); }
  TROUPE_HOST_DEVICE std::int64_t length(std::int64_t at) const {
    const AxisRange range = inside(at);
    return range.end - range.begin;
  }

private:
  TROUPE_HOST_DEVICE static AxisRange parts(std::int64_t at, std::int64_t n, std::int64_t m) {
    return {at * n / m, ((at + 1) * n + m - 1) / m};
  }
};

/// Windows over images [planes, height, width], where planes are samples times channels.
template <class Axis>
struct Windows {
  Axis rows, columns;

  /// body(element, place in its plane) for each element of a window, row by row.
  template <class Body>
  TROUPE_HOST_DEVICE void each_element(std::size_t window, const Body& body) const {
    const Place at(window, rows.count, columns.count);
    const AxisRange r = rows.inside(at.row), c = columns.inside(at.column);
    each(at.plane, r, c, rows.size, columns.size, body);
  }
  /// body(window) for each window that holds an element, row by row.
  template <class Body>
  TROUPE_HOST_DEVICE void each_window(std::size_t element, const Body& body) const {
    const Place at(element, rows.size, columns.size);
    const AxisRange r = rows.covering(at.row), c = columns.covering(at.column);
    each(at.plane, r, c, rows.count, columns.count,
         [&](std::int64_t window, std::int64_t) { body(window); });
  }
  /// What a window's mean divides by.
  TROUPE_HOST_DEVICE float area(std::size_t window) const {
    const Place at(window, rows.count, columns.count);
    return static_cast<float>(rows.length(at.row) * columns.length(at.column));
  }
  TROUPE_HOST_DEVICE std::int32_t place_in_plane(std::size_t element) const {
    const auto area = static_cast<std::size_t>(rows.size * columns.size);
    return static_cast<std::int32_t>(element % area);
  }

private:
  struct Place {
    std::int64_t plane, row, column;
    TROUPE_HOST_DEVICE Place(std::size_t i, std::int64_t height, std::int64_t width) {
      const auto at = static_cast<std::int64_t>(i);
      column = at % width;
      row = at / width % height;
      plane = at / width / height;
    }
  };

  template <class Body>
  TROUPE_HOST_DEVICE static void each(std::int64_t plane, const AxisRange& rows,
                                      const AxisRange& columns, std::int64_t height,
                                      std::int64_t width, const Body& body) {
    const std::int64_t first = plane * height * width;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t c = columns.begin; c < columns.end; ++c)
        body(first + r * width + c, r * width + c);
  }
};

/// The greatest of a window, the first of equals (a NaN if there is one), and where in the plane it
/// was.
template <class Axis>
struct MaxPoolingForward {
  Windows<Axis> windows;
  const float* x;
  float* y;
  std::int32_t* chosen;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    float best = 0.0f;
    std::int64_t where = -1;
    windows.each_element(i, [&](std::int64_t element, std::int64_t place) {
      const float value = x[element];
      const bool first_nan = value != value && best == best;
      if (where >= 0 && !(value > best) && !first_nan) return;
      best = value;
      where = place;
    });
    y[i] = best;
    chosen[i] = static_cast<std::int32_t>(where);
  }
};

/// dx[i] = the sum of dy of the windows whose greatest it was, in the windows' order.
template <class Axis>
struct MaxPoolingBackward {
  Windows<Axis> windows;
  const std::int32_t* chosen;
  const float* dy;
  float* dx;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const std::int32_t here = windows.place_in_plane(i);
    float sum = 0.0f;
    windows.each_window(i, [&](std::int64_t window) {
      if (chosen[window] == here) sum += dy[window];
    });
    dx[i] = sum;
  }
};

/// The mean of a window, row by row; what is padded counts as zeros.
template <class Axis>
struct AveragePoolingForward {
  Windows<Axis> windows;
  const float* x;
  float* y;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    float sum = 0.0f;
    windows.each_element(i, [&](std::int64_t element, std::int64_t) { sum += x[element]; });
    y[i] = sum / windows.area(i);
  }
};

/// dx[i] = the sum, over the windows that it is in, of dy over the window's size.
template <class Axis>
struct AveragePoolingBackward {
  Windows<Axis> windows;
  const float* dy;
  float* dx;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    float sum = 0.0f;
    windows.each_window(i, [&](std::int64_t window) {
      sum += dy[window] / windows.area(static_cast<std::size_t>(window));
    });
    dx[i] = sum;
  }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_POOLING_BODIES(each)                                  \
  TROUPE_POOLING_BODIES_OF(each, troupe::kernels::cuda::StridedAxis) \
  TROUPE_POOLING_BODIES_OF(each, troupe::kernels::cuda::AdaptiveAxis)
#define TROUPE_POOLING_BODIES_OF(each, axis)                       \
  each(troupe::kernels::cuda::MaxPoolingForward<axis>)             \
      each(troupe::kernels::cuda::MaxPoolingBackward<axis>)        \
          each(troupe::kernels::cuda::AveragePoolingForward<axis>) \
              each(troupe::kernels::cuda::AveragePoolingBackward<axis>)
