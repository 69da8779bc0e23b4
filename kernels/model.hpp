#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/layer.hpp"
#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// One parameter and where it is in a flat run of floats. Names are as in PyTorch.
struct ParameterInfo {
  std::string name;
  Shape shape;
  std::size_t offset = 0;    ///< of its first float; a multiple of 16 (64 bytes)
  std::size_t elements = 0;  ///< floats; zeros follow up to the next parameter
  std::int64_t fan_in = 1;   ///< inputs of one output, for initialisation
};

/// A network's architecture and the layout of its parameters, without their values.
///
/// All parameters live in one run of `flat_size()` floats, first layer first, each aligned to 64
/// bytes with zeros between. Gradients and optimizer state have the same layout, so that a bucket
/// is a range of floats and the optimizer one loop.
///
/// Ownership: a handle on something immutable; copies are cheap.
/// Threads:   any.
class Model {
public:
  /// Errors: `shape_mismatch` naming layer and shapes where layers do not fit each other;
  /// `invalid_argument` for no layers, a bad size, or two parameters of one name.
  static Result<Model> build(std::string name, Shape input, std::vector<LayerSpec> layers);

  const std::string& name() const noexcept;
  /// Of one sample.
  const Shape& input() const noexcept;
  const Shape& output() const noexcept;
  std::span<const Layer> layers() const noexcept;
  std::span<const ParameterInfo> parameters() const noexcept;
  /// Index of the parameter, if there is one of that name.
  std::optional<std::size_t> find_parameter(std::string_view name) const noexcept;

  /// Floats of all parameters with padding: the length of parameters, gradients and momentum.
  std::size_t flat_size() const noexcept;
  /// Floats without padding.
  std::size_t parameter_count() const noexcept;

  /// True if the parameters have the same names, shapes and places.
  bool same_layout(const Model& other) const noexcept;

private:
  struct Data;
  explicit Model(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// What can be chosen about a model by name.
struct ModelConfig {
  Shape input{1, 28, 28};  ///< lenet5 needs [1, 28, 28]
  std::int64_t classes = 10;
  std::vector<std::int64_t> hidden = {128, 64};  ///< mlp: sizes of the hidden layers
};

/// "lenet5" or "mlp". Errors: `not_found` with the names that are there, or as Model::build.
///
/// lenet5: conv1 (6 of 5x5, padding 2), conv2 (16 of 5x5), each with ReLU and 2x2 max pooling; fc1
/// (120), fc2 (84), fc3 (classes). mlp: fc1, fc2, ... with ReLU between.
Result<Model> make_model(std::string_view name, const ModelConfig& config = {});

}  // namespace troupe::kernels
