#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/internal/layer_kernel.hpp"
#include "kernels/model.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

struct NetworkOptions {
  Device device = Device::cpu;
  KernelChoice choice = KernelChoice::automatic;
  int threads = 1;
  bool input_gradient = false;  ///< whether backward gives the gradient of the input too
};

/// A model's layers as kernels for one batch size, with their activations.
///
/// Threads: one at a time, any.
class Network {
public:
  static Result<Network> create(const Model& model, std::int64_t batch,
                                const NetworkOptions& options);

  /// Where to put the samples before `forward`, and where the output is after it: row-major,
  /// batch first.
  std::span<float> input() noexcept { return floats(buffers_[0]); }
  std::span<const float> output() const noexcept { return floats(buffers_.back()); }

  /// Whether any of its layers is computed by a vendor's library.
  bool uses_library() const noexcept;

  Status forward(std::span<const float> parameters);

  /// Where to put the output's gradient before `backward`, and where the input's is after it (if
  /// it was asked for): row-major.
  std::span<float> output_gradient() noexcept;
  std::span<const float> input_gradient() const noexcept;

  /// Follows `forward`. Overwrites `gradients` where parameters are, and calls `ready` (if any) as
  /// Workspace says.
  Status backward(std::span<const float> parameters, std::span<float> gradients,
                  const GradientReady& ready);

private:
  struct Step {
    std::unique_ptr<LayerKernel> kernel;
    std::vector<std::size_t> parameters;  ///< indices, last first
    bool input_gradient = false;
  };

  explicit Network(Model model) : model_(std::move(model)) {}
  Status add_layers(const NetworkOptions& options);
  Result<std::size_t> add_layer(std::size_t index, const NetworkOptions& options);
  Status add_reorder(const Activation& to, const NetworkOptions& options);
  Status add_step(std::unique_ptr<LayerKernel> kernel, std::span<const Layer> layers);
  Status allocate_gradients();

  static std::span<float> floats(Buffer& buffer) noexcept;
  static std::span<const float> floats(const Buffer& buffer) noexcept;

  Model model_;
  std::vector<Step> steps_;
  std::vector<Buffer> buffers_;  ///< [0] the input, [i + 1] the output of step i
  Activation current_;           ///< while building: what the last step gives
  bool any_gradient_ = false;    ///< while building: whether a gradient is wanted before here
  Buffer gradients_[2];          ///< of activations: step i reads [i % 2 ^ 1] and writes [i % 2]
};

}  // namespace troupe::kernels
