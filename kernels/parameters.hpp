#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/model.hpp"
#include "kernels/tensor.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

/// A value for each of a model's parameters, in one buffer laid out as the model says: weights, but
/// also gradients and momentum.
///
/// Ownership: copies share the buffer (use `clone` for another one).
/// Threads:   any number may read at a time (every rank of a node reads one set of weights); a
///            writer must be alone.
class Parameters {
public:
  /// All zero. Errors: `resource_exhausted`.
  static Result<Parameters> zeros(const Model& model);

  /// As each parameter's layer says. A pure function of the seed: parameter i draws from stream i
  /// of it. Errors: `resource_exhausted`.
  static Result<Parameters> initialized(const Model& model, std::uint64_t seed);

  /// In `buffer`, which holds `model.flat_size()` floats, zeros between the parameters included.
  /// Errors: `shape_mismatch` for another size, `invalid_argument` for one not aligned to 64 bytes.
  static Result<Parameters> in(const Model& model, Buffer buffer);

  /// A copy in fresh memory. Errors: `resource_exhausted`.
  Result<Parameters> clone() const;

  const Model& model() const noexcept { return model_; }
  const Buffer& buffer() const noexcept { return buffer_; }

  /// All `model().flat_size()` floats.
  std::span<float> values() noexcept;
  std::span<const float> values() const noexcept;
  /// Those of parameter `index`.
  std::span<float> values(std::size_t index) noexcept;
  std::span<const float> values(std::size_t index) const noexcept;
  /// A view of parameter `index` in its shape.
  Tensor tensor(std::size_t index) const;

private:
  Parameters(Model model, Buffer buffer) : model_(std::move(model)), buffer_(std::move(buffer)) {}

  Model model_;
  Buffer buffer_;
};

}  // namespace troupe::kernels
