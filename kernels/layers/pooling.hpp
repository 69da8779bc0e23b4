#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Maximum or mean over square windows. Windows that would run over the far edge are left out, and
/// padded elements are -infinity for the maximum and count as zeros for the mean.
struct Pooling {
  enum class Kind : std::uint8_t { max, average };
  Kind kind = Kind::max;
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;

  std::string describe() const { return kind == Kind::max ? "max pooling" : "average pooling"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

/// Maximum or mean over windows that make up the whole image, whatever its size: [channels, height,
/// width] to [channels, `height`, `width`]. Along an axis of n elements window i of m goes from
/// floor(i n / m) to before ceil((i + 1) n / m), so where m does not divide n, neighbours overlap.
/// What PyTorch calls AdaptiveMaxPool2d and AdaptiveAvgPool2d.
struct AdaptivePooling {
  Pooling::Kind kind = Pooling::Kind::average;
  std::int64_t height = 1;
  std::int64_t width = 1;

  std::string describe() const {
    return kind == Pooling::Kind::max ? "adaptive max pooling" : "adaptive average pooling";
  }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

/// The mean of each channel: [channels, height, width] to [channels, 1, 1]. What PyTorch calls
/// adaptive average pooling to one pixel.
struct GlobalAveragePooling {
  std::string describe() const { return "global average pooling"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
