#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/layer.hpp"
#include "kernels/model.hpp"
#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Puts a model together whose layers branch and join:
///
///     ModelBuilder model("block", {64, 8, 8});
///     auto x = model.add(Convolution{"conv1", 64, 3, 1, 1}, model.input());
///     model.add(Add{}, x, model.input());
///     Result<Model> block = model.build();
///
/// A mistake is kept until build(), which tells the first.
/// Threads: one at a time.
class ModelBuilder {
public:
  /// What a layer gives, of the builder that it came from.
  struct Value {
    std::size_t index = 0;
  };

  ModelBuilder(std::string name, Shape input, DType input_dtype = DType::f32);
  ModelBuilder(ModelBuilder&&) noexcept;
  ~ModelBuilder();

  Value input() const noexcept { return {0}; }
  Value add(LayerSpec layer, Value input) { return add(std::move(layer), std::vector{input}); }
  Value add(LayerSpec layer, Value a, Value b) { return add(std::move(layer), std::vector{a, b}); }
  Value add(LayerSpec layer, std::vector<Value> inputs);
  /// Of one sample; of the model's input after a mistake.
  const Shape& shape(Value value) const noexcept;

  /// The model whose output is what the last layer gives. Errors: `shape_mismatch` naming layer and
  /// shapes where layers do not fit each other, or a parameter the one that it is tied to;
  /// `invalid_argument` for no layers, a layer of token ids on numbers or of numbers on token ids,
  /// a bad size, two parameters of one name, a tie to what no earlier linear layer or embedding
  /// has, or a layer whose output nobody uses.
  Result<Model> build();

private:
  Status try_add(LayerSpec spec, std::span<const Value> inputs);
  Result<std::size_t> add_parameter(const LayerSpec& layer, const ParameterSpec& parameter);
  Result<std::size_t> find_tied(const LayerSpec& layer, const ParameterSpec& parameter) const;
  void place_parameters();

  std::shared_ptr<Model::Data> data_;
  Status status_;
};

}  // namespace troupe::kernels
