#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::layers {

/// Errors name the layer as `what`.
Status require_inputs(std::string_view what, std::span<const Shape> inputs, std::size_t count);
Status require_size(std::string_view what, std::string_view field, std::int64_t value,
                    std::int64_t least);
/// [channels, height, width], none of them zero.
Status require_image(std::string_view what, const Shape& input);
/// [..., features]: at least one axis, no axis of size zero, and room for a batch's.
Status require_features(std::string_view what, const Shape& input);

/// [tokens, features], none of them zero.
Status require_tokens(std::string_view what, const Shape& input);
/// Of a normalization: above 0 and below 1.
Status require_epsilon(std::string_view what, float epsilon);

/// `input` with its last axis of another size. Errors: as require_features.
Result<Shape> with_last(std::string_view what, const Shape& input, std::int64_t size);

/// A window that slides over an axis.
struct Window {
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;
  std::int64_t dilation = 1;
};

/// [channels, windows in height, windows in width]. Errors: `invalid_argument` for a bad window,
/// `shape_mismatch` if none fits.
Result<Shape> slide(std::string_view what, const Shape& input, std::int64_t channels,
                    const Window& window);

}  // namespace troupe::kernels::layers
