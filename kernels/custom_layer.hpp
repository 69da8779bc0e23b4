#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// What a layer of one's own computes from. Tensors are f32, row-major, the batch first: input i is
/// [batch] + inputs[i] of output_shape().
struct CustomForward {
  std::int64_t batch;
  std::span<const std::span<const float>> inputs;
  std::span<const std::span<const float>> parameters;  ///< as parameters() lists them
  std::span<float> output;                             ///< zeros, to be written
  int threads;                                         ///< that a pass may use; one is always right
};

struct CustomBackward {
  std::int64_t batch;
  std::span<const std::span<const float>> inputs;      ///< as in the forward pass before it
  std::span<const std::span<const float>> parameters;  ///< likewise
  std::span<const float> output;                       ///< as the forward pass left it
  std::span<const float> output_gradient;
  /// Zeros, to be written: sums over the batch.
  std::span<const std::span<float>> parameter_gradients;
  /// Likewise, one for each input; empty where nobody asks for it.
  std::span<const std::span<float>> input_gradients;
  int threads;
};

/// A layer of one's own: derive from it, and put it into a model as Custom. docs/layers.md has an
/// example from end to end.
///
/// A job's result is exact only if all of its layers are. So what a pass gives must be a pure
/// function of what it is given and of the object, which nothing changes: no clock, no random
/// numbers, no memory of an earlier pass, and sums in one order, whatever the thread. Compiled with
/// -ffp-contract=off, and with no function of the C library but sqrt, it is the same on all CPUs.
///
/// Ownership: shared by all models that have it, and immutable.
/// Threads:   any number at a time, all of it: ranks of a node share the object.
/// Failure:   an error of a pass ends that pass and is its error. An exception is turned into one.
class CustomLayer {
public:
  virtual ~CustomLayer() = default;

  /// What it makes of samples of these shapes. Errors: `shape_mismatch` for those that it does not
  /// take, `invalid_argument` for a number of inputs that it does not have.
  virtual Result<Shape> output_shape(std::span<const Shape> inputs) const = 0;
  /// What it learns, for inputs that output_shape() takes. All must be trained, and its own.
  virtual std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const {
    (void)inputs;
    return {};
  }

  virtual Status forward(const CustomForward& pass) const = 0;
  /// The gradients of the sum over all elements of output * output_gradient.
  virtual Status backward(const CustomBackward& pass) const = 0;
};

/// A layer of one's own in a model; one of LayerSpec. Its parameters are `NAME.` and what it calls
/// them.
struct Custom {
  std::string name;
  std::shared_ptr<const CustomLayer> layer;

  std::string describe() const;
  /// Errors: those of the layer, or `invalid_argument` for no layer, no name or an output that is
  /// no sample's.
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  /// Errors: `invalid_argument` for a parameter without name or elements, or one that is a
  /// statistic or tied.
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

/// Runs the layer on random samples, with random parameters, and compares its gradients with
/// central differences of its output: for a test. Inputs and parameters are uniform in [-1, 1], a
/// pure function of `seed`; where the layer has a kink, another seed may help. Errors: `internal`
/// naming the gradient, the element and both values if they are further apart than `tolerance`,
/// relative to the greatest of that gradient (or 1), or if two passes give different bits; those of
/// the layer.
Status check_custom_layer(const Custom& layer, const std::vector<Shape>& inputs,
                          std::int64_t batch = 3, double tolerance = 1e-2, std::uint64_t seed = 1);

}  // namespace troupe::kernels
