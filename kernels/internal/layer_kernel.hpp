#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/dtype.hpp"
#include "kernels/layer.hpp"
#include "kernels/model.hpp"
#include "kernels/shape.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// What passes between two layers: its shape (batch first) and how it lies in memory. A gradient
/// lies as the activation that it is of.
struct Activation {
  enum class Layout : std::uint8_t {
    plain,        ///< row-major
    interleaved,  ///< [batch / 8 rounded up, ..., 8]: the same element of 8 samples side by side
    blocked,      ///< as `description`, the backend's own, says
  };
  Shape shape;
  Layout layout = Layout::plain;
  std::size_t floats = 0;
  std::shared_ptr<const void> description;
};

/// Samples that lie side by side in Layout::interleaved.
inline constexpr std::int64_t kLanes = 8;

Activation plain_activation(const Shape& shape);
Activation interleaved_activation(const Shape& shape);

struct ForwardPass {
  const float* input;
  const float* parameters;  ///< all of the model's
  float* output;
};

struct BackwardPass {
  const float* input;   ///< as in the forward pass before it
  const float* output;  ///< as the forward pass left it
  const float* output_gradient;
  const float* parameters;
  float* gradients;       ///< all of the model's; the layer overwrites its own
  float* input_gradient;  ///< null unless it was asked for
};

/// A layer (or a run of layers in one) made ready for one batch size on one device.
///
/// Threads: one at a time, any. `backward` follows the `forward` whose buffers it is given.
class LayerKernel {
public:
  virtual ~LayerKernel() = default;
  virtual Status forward(const ForwardPass& pass) = 0;
  virtual Status backward(const BackwardPass& pass) = 0;
  /// Whether a vendor's library computes it, whose last bits depend on the CPU.
  virtual bool uses_library() const noexcept { return false; }

  /// What it reads (and how that must lie) and what it writes.
  const Activation& input() const noexcept { return input_; }
  const Activation& output() const noexcept { return output_; }

protected:
  Activation input_;
  Activation output_;
};

/// What there are kernels for: the key's first part, with element type and device.
enum class Operation : std::uint8_t {
  convolution,
  linear,
  relu,
  max_pooling,
  average_pooling,
  convolution_relu_max_pooling,  ///< three layers in one
};

struct KernelKey {
  Operation operation;
  DType dtype = DType::f32;
  Device device = Device::cpu;
};

/// What a kernel is to be made for.
struct KernelRequest {
  const Model& model;
  std::span<const Layer> layers;  ///< of `model`: one, or the run that the operation stands for
  const Activation& input;  ///< what the layer before gives; the kernel may want another layout
  bool input_gradient;      ///< whether backward must give it
  KernelChoice choice;
  int threads;
};

/// A kernel, or null from a maker that does not handle these layers.
using MadeKernel = Result<std::unique_ptr<LayerKernel>>;
using KernelMaker = MadeKernel (*)(const KernelRequest&);

/// The maker for `key`, or null if the device's backend has none.
KernelMaker find_kernel(const KernelKey& key) noexcept;

/// A kernel that copies `from` into the layout of `to`, and gradients back; null if they lie alike.
MadeKernel make_reorder(Device device, const Activation& from, const Activation& to, int threads);

}  // namespace troupe::kernels
