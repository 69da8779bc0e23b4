#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

// What a model is made of, as data: a backend turns it into kernels. Shapes here are of one sample,
// [channels, height, width] or [features]; the batch comes first in tensors.

/// Cross-correlation (what the field calls convolution) with a square window, and a bias.
/// Parameters `NAME.weight` [out, in, kernel, kernel] and `NAME.bias` [out].
struct Convolution {
  std::string name;
  std::int64_t out_channels = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

/// y = W x + b. Parameters `NAME.weight` [out, in] and `NAME.bias` [out].
struct Linear {
  std::string name;
  std::int64_t out_features = 1;
};

/// max(x, 0); NaN stays NaN.
struct Relu {};

/// Maximum or mean over square windows. Windows that would run over the far edge are left out, and
/// padded elements are -infinity for the maximum and count as zeros for the mean.
struct Pooling {
  enum class Kind : std::uint8_t { max, average };
  Kind kind = Kind::max;
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};

/// [channels, height, width] to [channels * height * width].
struct Flatten {};

using LayerSpec = std::variant<Convolution, Linear, Relu, Pooling, Flatten>;

/// "convolution 'conv1'", "max pooling": for messages.
std::string describe(const LayerSpec& layer);

/// A layer in its place in a model: what goes in, what comes out, which parameters are its own
/// (indices into Model::parameters()).
struct Layer {
  LayerSpec spec;
  Shape input;
  Shape output;
  std::optional<std::size_t> weight;
  std::optional<std::size_t> bias;
};

/// What the layer makes of a sample of shape `input`. Errors: `shape_mismatch` naming layer and
/// shape, `invalid_argument` for a size below its least.
Result<Shape> output_shape(const LayerSpec& layer, const Shape& input);

}  // namespace troupe::kernels
