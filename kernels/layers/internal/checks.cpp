#include "kernels/layers/internal/checks.hpp"

#include <vector>

#include <fmt/format.h>

namespace troupe::kernels::layers {
namespace {

// Sizes above it are mistakes; sums of a few stay far from overflow.
constexpr std::int64_t kMaxSize = 1 << 24;

/// Number of windows along an axis. Errors: `shape_mismatch` if there is none.
Result<std::int64_t> windows(std::string_view what, const Shape& input, std::int64_t size,
                             const Window& window) {
  const std::int64_t reach = (window.kernel - 1) * window.dilation + 1;
  if (size + 2 * window.padding < reach)
    return Error{Code::shape_mismatch,
                 fmt::format("{}: a window of {} does not fit input {} with padding {}", what,
                             reach, to_string(input), window.padding)};
  return (size + 2 * window.padding - reach) / window.stride + 1;
}

}  // namespace

Status require_inputs(std::string_view what, std::span<const Shape> inputs, std::size_t count) {
  if (inputs.size() == count) return {};
  return {Code::invalid_argument,
          fmt::format("{} has {} inputs, but needs {}", what, inputs.size(), count)};
}

Status require_size(std::string_view what, std::string_view field, std::int64_t value,
                    std::int64_t least) {
  if (value >= least && value <= kMaxSize) return {};
  return {Code::invalid_argument,
          fmt::format("{}: {} is {}, but must be {} to {}", what, field, value, least, kMaxSize)};
}

Status require_image(std::string_view what, const Shape& input) {
  if (input.rank() == 3 && input.elements() > 0) return {};
  return {Code::shape_mismatch, fmt::format("{}: input must be [channels, height, width], not {}",
                                            what, to_string(input))};
}

Status require_features(std::string_view what, const Shape& input) {
  if (input.rank() > 0 && input.rank() < Shape::kMaxRank && input.elements() > 0) return {};
  return {Code::shape_mismatch,
          fmt::format("{}: input must be [..., features] of 1 to {} axes, not {}", what,
                      Shape::kMaxRank - 1, to_string(input))};
}

Status require_tokens(std::string_view what, const Shape& input) {
  if (input.rank() == 2 && input.elements() > 0) return {};
  return {Code::shape_mismatch,
          fmt::format("{}: input must be [tokens, features], not {}", what, to_string(input))};
}

Status require_epsilon(std::string_view what, float epsilon) {
  if (epsilon > 0.0f && epsilon < 1.0f) return {};
  return {Code::invalid_argument,
          fmt::format("{}: epsilon is {}, but must be above 0 and below 1", what, epsilon)};
}

Result<Shape> with_last(std::string_view what, const Shape& input, std::int64_t size) {
  TROUPE_TRY(require_features(what, input));
  std::vector<std::int64_t> dims(input.dims().begin(), input.dims().end());
  dims.back() = size;
  return Shape::checked(dims);
}

Result<Shape> slide(std::string_view what, const Shape& input, std::int64_t channels,
                    const Window& window) {
  TROUPE_TRY(require_size(what, "kernel", window.kernel, 1));
  TROUPE_TRY(require_size(what, "stride", window.stride, 1));
  TROUPE_TRY(require_size(what, "padding", window.padding, 0));
  TROUPE_TRY(require_size(what, "dilation", window.dilation, 1));
  TROUPE_TRY(require_image(what, input));
  TROUPE_ASSIGN(const auto height, windows(what, input, input[1], window));
  TROUPE_ASSIGN(const auto width, windows(what, input, input[2], window));
  const std::int64_t dims[] = {channels, height, width};
  return Shape::checked(dims);
}

}  // namespace troupe::kernels::layers
