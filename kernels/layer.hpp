#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/custom_layer.hpp"
#include "kernels/dtype.hpp"
#include "kernels/layers/activation.hpp"
#include "kernels/layers/attention.hpp"
#include "kernels/layers/batch_norm.hpp"
#include "kernels/layers/convolution.hpp"
#include "kernels/layers/dropout.hpp"
#include "kernels/layers/embedding.hpp"
#include "kernels/layers/group_norm.hpp"
#include "kernels/layers/layer_norm.hpp"
#include "kernels/layers/linear.hpp"
#include "kernels/layers/lstm.hpp"
#include "kernels/layers/parameter_spec.hpp"
#include "kernels/layers/pooling.hpp"
#include "kernels/layers/structure.hpp"
#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

// What a model is made of, as data: a backend turns it into kernels. Shapes here are of one sample,
// [channels, height, width] or [features]; the batch comes first in tensors.
//
// Each kind of layer has
//   describe()            "convolution 'conv1'", "max pooling": for messages;
//   output_shape(inputs)  what it makes of samples of these shapes. Errors: `shape_mismatch` naming
//                         layer and shapes, `invalid_argument` for a size below its least;
// and, if it has any parameters,
//   parameters(inputs)    what it learns, for inputs that output_shape() takes;
//   name                  what their names begin with;
// and
//   kInput                the element type of its input, if that is not f32.

using LayerSpec = std::variant<Convolution, Linear, BatchNorm, Relu, Pooling, AdaptivePooling,
                               GlobalAveragePooling, Flatten, Reshape, Add, Embedding,
                               PositionEmbedding, LayerNorm, RmsNorm, GroupNorm, Gelu, Silu,
                               Sigmoid, Tanh, Concat, Dropout, Attention, Lstm, Custom>;

std::string describe(const LayerSpec& layer);
Result<Shape> output_shape(const LayerSpec& layer, std::span<const Shape> inputs);
Result<std::vector<ParameterSpec>> parameters_of(const LayerSpec& layer,
                                                 std::span<const Shape> inputs);
/// What its parameters' names begin with; empty for layers without any.
std::string name_of(const LayerSpec& layer);
/// What its inputs' elements are; those of what it gives are f32.
DType input_dtype(const LayerSpec& layer);

/// A layer in its place in a model.
struct Layer {
  LayerSpec spec;
  std::vector<std::size_t> from;  ///< where its inputs come from: 0 is the model's input, and i + 1
                                  ///< what the model's layer i gives
  std::vector<Shape> inputs;
  Shape output;
  std::vector<std::size_t> parameters;  ///< indices into Model::parameters(), as it declares them

  const Shape& input() const { return inputs[0]; }
};

}  // namespace troupe::kernels
