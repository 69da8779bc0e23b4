#include "kernels/layer.hpp"

#include <fmt/format.h>

namespace troupe::kernels {

namespace {

// Well above any real layer and far from overflow.
constexpr std::int64_t kMaxSize = 1 << 24;

struct Describe {
  std::string operator()(const Convolution& layer) const {
    return fmt::format("convolution '{}'", layer.name);
  }
  std::string operator()(const Linear& layer) const {
    return fmt::format("linear '{}'", layer.name);
  }
  std::string operator()(const Relu&) const { return "relu"; }
  std::string operator()(const Pooling& layer) const {
    return layer.kind == Pooling::Kind::max ? "max pooling" : "average pooling";
  }
  std::string operator()(const Flatten&) const { return "flatten"; }
};

Status require_size(const LayerSpec& layer, std::string_view what, std::int64_t value,
                    std::int64_t least) {
  if (value >= least && value <= kMaxSize) return {};
  return {Code::invalid_argument, fmt::format("{}: {} is {}, but must be {} to {}", describe(layer),
                                              what, value, least, kMaxSize)};
}

/// Number of windows along an axis. Errors: `shape_mismatch` if there is none.
Result<std::int64_t> windows(const LayerSpec& layer, const Shape& input, std::int64_t size,
                             std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  if (size + 2 * padding < kernel)
    return Error{Code::shape_mismatch,
                 fmt::format("{}: a window of {} does not fit input {} with padding {}",
                             describe(layer), kernel, to_string(input), padding)};
  return (size + 2 * padding - kernel) / stride + 1;
}

Status require_image(const LayerSpec& layer, const Shape& input) {
  if (input.rank() == 3 && input.elements() > 0) return {};
  return {Code::shape_mismatch, fmt::format("{}: input must be [channels, height, width], not {}",
                                            describe(layer), to_string(input))};
}

struct OutputShape {
  const LayerSpec& self;
  const Shape& input;

  Result<Shape> sliding(std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                        std::int64_t padding) const {
    TROUPE_TRY(require_size(self, "kernel", kernel, 1));
    TROUPE_TRY(require_size(self, "stride", stride, 1));
    TROUPE_TRY(require_size(self, "padding", padding, 0));
    TROUPE_TRY(require_image(self, input));
    TROUPE_ASSIGN(const auto height, windows(self, input, input[1], kernel, stride, padding));
    TROUPE_ASSIGN(const auto width, windows(self, input, input[2], kernel, stride, padding));
    const std::int64_t dims[] = {channels, height, width};
    return Shape::checked(dims);
  }

  Result<Shape> operator()(const Convolution& layer) const {
    TROUPE_TRY(require_size(self, "out_channels", layer.out_channels, 1));
    return sliding(layer.out_channels, layer.kernel, layer.stride, layer.padding);
  }
  Result<Shape> operator()(const Pooling& layer) const {
    // A window must touch the input, or its maximum is -infinity.
    if (layer.padding * 2 > layer.kernel)
      return Error{Code::invalid_argument,
                   fmt::format("{}: padding {} is more than half of kernel {}", describe(self),
                               layer.padding, layer.kernel)};
    TROUPE_TRY(require_image(self, input));
    return sliding(input[0], layer.kernel, layer.stride, layer.padding);
  }
  Result<Shape> operator()(const Linear& layer) const {
    TROUPE_TRY(require_size(self, "out_features", layer.out_features, 1));
    if (input.rank() != 1 || input.elements() == 0)
      return Error{Code::shape_mismatch,
                   fmt::format("{}: input must be [features], not {}; flatten it first",
                               describe(self), to_string(input))};
    return Shape{layer.out_features};
  }
  Result<Shape> operator()(const Relu&) const { return input; }
  Result<Shape> operator()(const Flatten&) const { return Shape{input.elements()}; }
};

}  // namespace

std::string describe(const LayerSpec& layer) {
  return std::visit(Describe{}, layer);
}

Result<Shape> output_shape(const LayerSpec& layer, const Shape& input) {
  return std::visit(OutputShape{layer, input}, layer);
}

}  // namespace troupe::kernels
