#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dtype.hpp"
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
  Initial initial = {};
  ParameterKind kind = ParameterKind::trained;
  float momentum = 0.0f;  ///< statistic: the share of the newest batch
};

/// A network's architecture and the layout of its parameters, without their values.
///
/// All parameters live in one run of `flat_size()` floats, each aligned to 64 bytes with zeros
/// between: those that the optimizer trains, first layer first, then the statistics, which are
/// final before any gradient is. Gradients and optimizer state have the same layout, so that a
/// bucket is a range of floats and the optimizer one loop.
///
/// Ownership: a handle on something immutable; copies are cheap.
/// Threads:   any.
class Model {
public:
  /// Of layers one after the other; the input is of what the first one takes. Errors: as
  /// ModelBuilder::build.
  static Result<Model> build(std::string name, Shape input, std::vector<LayerSpec> layers);

  const std::string& name() const noexcept;
  /// Of one sample.
  const Shape& input() const noexcept;
  /// Of its elements: f32, or i32 for token ids.
  DType input_dtype() const noexcept;
  /// Token ids of the input are 0..vocabulary()-1; 0 if it is none.
  std::int64_t vocabulary() const noexcept;
  const Shape& output() const noexcept;
  /// Outputs of a sample that have a label each: the tokens of [tokens, classes], else 1.
  std::int64_t labels_per_sample() const noexcept;
  std::span<const Layer> layers() const noexcept;
  std::span<const ParameterInfo> parameters() const noexcept;
  /// Index of the parameter, if there is one of that name.
  std::optional<std::size_t> find_parameter(std::string_view name) const noexcept;

  /// Floats of all parameters with padding: the length of parameters, gradients and momentum.
  std::size_t flat_size() const noexcept;
  /// The floats before the first statistic: what the optimizer trains.
  std::size_t trained_size() const noexcept;
  /// Floats that are trained, without padding.
  std::size_t parameter_count() const noexcept;

  /// True if the parameters have the same names, shapes and places.
  bool same_layout(const Model& other) const noexcept;

private:
  friend class ModelBuilder;
  struct Data;
  explicit Model(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace troupe::kernels
