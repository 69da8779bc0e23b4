#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/dtype.hpp"
#include "kernels/internal/shared_scratch.hpp"
#include "kernels/layer.hpp"
#include "kernels/model.hpp"
#include "kernels/operation.hpp"
#include "kernels/pass_key.hpp"
#include "kernels/shape.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

class Stream;

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

/// The inputs of a pass, one for each of the kernel's. Pointers are the device's; the spans of them
/// last for the call.
struct ForwardPass {
  /// Where they are i32, as Embedding's, the same memory holds those.
  std::span<const float* const> inputs;
  const float* parameters;  ///< all of the model's
  float* output;
  const PassKey* key = nullptr;  ///< the device's; null: PassKey()
  Stream* stream = nullptr;      ///< where it is done; on the CPU nobody looks at it
  /// What forward_sums() gave, summed over all ranks; the device's.
  const double* sums_over_ranks = nullptr;

  const float* input() const noexcept { return inputs[0]; }
};

struct BackwardPass {
  std::span<const float* const> inputs;  ///< as in the forward pass before it, if it is used
  const float* output;                   ///< as the forward pass left it, if it is used
  const float* output_gradient;
  const float* parameters;
  /// All of the model's; the layer overwrites its own, but see KernelRequest::adds_gradient.
  float* gradients;
  std::span<float* const> input_gradients;  ///< to be overwritten; null unless asked for
  Stream* stream = nullptr;                 ///< as in the forward pass
  /// What backward_sums() gave, summed over all ranks; the device's.
  const double* sums_over_ranks = nullptr;

  const float* input() const noexcept { return inputs[0]; }
  float* input_gradient() const noexcept { return input_gradients[0]; }
};

/// For LayerKernel::add_statistics.
struct StatisticsPass {
  float* gradients;  ///< all of the model's
  Stream* stream = nullptr;
};

/// What may be done with the memory around a kernel.
struct KernelTraits {
  /// Whether the backward pass reads the input, and the output. What is not read is not kept.
  bool backward_reads_input = true;
  bool backward_reads_output = true;
  /// Whether the output may lie where the (first) input does, and its gradient where the output's.
  bool in_place = false;
  std::size_t in_place_input = 0;  ///< at inference it may be another than the first
  /// All inputs have the same gradient: only the first is written.
  bool one_gradient = false;
  /// And it is the output's: backward is not called.
  bool passes_gradient = false;
  /// The output is the input under another shape: forward is not called either.
  bool alias = false;
  /// A pass waits for the stream in its middle, as something of it is done on the host.
  bool waits = false;
};

/// A layer (or a run of layers in one) made ready for one batch size on one device.
///
/// Threads: one at a time, any. `backward` follows the `forward` whose buffers it is given.
class LayerKernel {
public:
  virtual ~LayerKernel() = default;
  virtual Status forward(const ForwardPass& pass) = 0;
  virtual Status backward(const BackwardPass& pass) = 0;
  virtual KernelTraits traits() const noexcept { return {}; }

  /// How many numbers a pass has summed over all ranks before forward() and before backward():
  /// those that the calls below write first. Their `sums` are the device's.
  virtual std::size_t sums_over_ranks() const noexcept { return 0; }
  virtual Status forward_sums(const ForwardPass& pass, double* sums);
  virtual Status backward_sums(const BackwardPass& pass, double* sums);
  /// Whether forward() can go by those sums of all ranks, which are the host's here.
  virtual Status check_sums(std::span<const double> sums) const;

  /// Writes what the last forward pass adds to the layer's statistics, times the batch, to their
  /// places in all of the model's gradients.
  virtual Status add_statistics(const StatisticsPass& pass) const {
    (void)pass;
    return {};
  }
  /// Whether a vendor's library computes it, whose last bits depend on the CPU.
  virtual bool uses_library() const noexcept { return false; }

  /// What it reads (and how that must lie) and what it writes.
  std::span<const Activation> inputs() const noexcept { return inputs_; }
  const Activation& output() const noexcept { return output_; }

protected:
  std::vector<Activation> inputs_;
  Activation output_;
};

/// An input of a kernel that is to be made.
struct KernelInput {
  Activation activation;  ///< what the layer before gives; the kernel may want another layout
  bool gradient = false;  ///< whether backward must give its gradient
};

/// What a pass is for.
enum class Mode : std::uint8_t {
  training,   ///< forward and backward, with the statistics of the batch
  inference,  ///< forward only, with the running statistics
};

/// What a kernel is to be made for.
struct KernelRequest {
  const Model& model;
  std::span<const Layer> layers;  ///< of `model`: one, or the run that the operation stands for
  std::span<const KernelInput> inputs;
  Mode mode;
  KernelChoice choice;
  int threads;
  SharedScratch& scratch;  ///< outlives the kernel

  const Activation& input() const noexcept { return inputs[0].activation; }
  bool input_gradient() const noexcept { return inputs[0].gradient; }
  std::int64_t batch() const { return input().shape[0]; }
  /// What the (last) layer gives for this batch.
  Shape output_shape() const { return layers.back().output.with_first(batch()); }
  /// Offset of a layer's parameter in the flat run; of the first one, unless said.
  std::size_t offset_of(std::size_t parameter, std::size_t layer = 0) const {
    return model.parameters()[layers[layer].parameters[parameter]].offset;
  }
  /// The (first) layer's place in the model.
  std::size_t layer_index() const {
    return static_cast<std::size_t>(layers.data() - model.layers().data());
  }
  /// Whether a later layer has that parameter too: its gradient is there before this one's, which
  /// is then to be added to it.
  bool adds_gradient(std::size_t parameter) const;
};

/// A kernel, or null from a maker that does not handle these layers.
using MadeKernel = Result<std::unique_ptr<LayerKernel>>;
using KernelMaker = MadeKernel (*)(const KernelRequest&);

}  // namespace troupe::kernels
