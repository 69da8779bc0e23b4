#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/internal/arena.hpp"
#include "kernels/internal/layer_kernel.hpp"
#include "kernels/model.hpp"
#include "kernels/pass_key.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

struct NetworkOptions {
  Device device = Device::cpu;
  KernelChoice choice = KernelChoice::automatic;
  int threads = 1;
  Mode mode = Mode::training;
  bool input_gradient = false;  ///< whether backward gives the gradient of the input too
};

/// A model's layers as kernels for one batch size, with their activations.
///
/// Activations and their gradients share one block of memory: each has a place in it for as long as
/// a later kernel of the pass, forward or backward, reads it.
///
/// Threads: one at a time, any.
class Network {
public:
  static Result<Network> create(const Model& model, std::int64_t batch,
                                const NetworkOptions& options);

  /// Where to put the samples before `forward`, and where the output is after it (until
  /// `backward`): row-major, batch first.
  std::span<float> input() noexcept { return floats(values_.front()); }
  /// The same place for a model of token ids.
  std::span<std::int32_t> ids() noexcept;
  std::span<const float> output() const noexcept { return floats(values_[output_]); }

  /// Whether any of its layers is computed by a vendor's library.
  bool uses_library() const noexcept;
  /// Bytes of activations and gradients.
  std::size_t activation_bytes() const noexcept { return memory_.size(); }
  /// Bytes that kernels share for what they need during a call.
  std::size_t scratch_bytes() const noexcept { return scratch_->size(); }

  Status forward(std::span<const float> parameters, const PassKey& key = {});

  /// Where to put the output's gradient between `forward` and `backward`, and where the input's is
  /// after it (if it was asked for): row-major. Training only.
  std::span<float> output_gradient() noexcept;
  std::span<const float> input_gradient() const noexcept;

  /// Follows `forward`. Overwrites `gradients` where parameters are, and calls `ready` (if any) as
  /// Workspace says. Training only.
  Status backward(std::span<const float> parameters, std::span<float> gradients,
                  const GradientReady& ready);

private:
  using Block = std::optional<std::size_t>;

  /// What passes between kernels.
  struct Value {
    Activation activation;
    bool wants_gradient = false;
    std::size_t block = 0;  ///< of the arena
    Block gradient;         ///< the input's and the output's, at the end
  };
  /// Of gradients, where a value goes to several kernels: `into` += `from`, or becomes its copy.
  struct Sum {
    std::size_t into;
    std::size_t from;
    std::size_t floats;
    bool copy;
  };
  struct Step {
    std::unique_ptr<LayerKernel> kernel;
    std::vector<std::size_t> inputs;  ///< values
    std::size_t output = 0;           ///< value
    bool trained = false;             ///< whether it has parameters that are
    /// Those of them whose gradient is final after this step: indices into the model's, last first.
    std::vector<std::size_t> completes;
    // The backward pass.
    bool runs_backward = false;
    std::size_t output_gradient = 0;     ///< block
    std::vector<Block> input_gradients;  ///< that the kernel writes
    std::vector<Sum> sums;               ///< after the kernel
  };
  /// Values while the network is built.
  struct Builder;

  explicit Network(Model model) : model_(std::move(model)) {}
  Status plan();
  void plan_forward();
  void plan_backward();
  std::size_t backward_time(std::size_t step) const { return 2 * steps_.size() - step; }

  Status run_backward(Step& step, std::span<const float> parameters, std::span<float> gradients);
  float* at(std::size_t block) const noexcept;
  std::span<float> floats(const Value& value) const noexcept;

  Model model_;
  NetworkOptions options_;
  std::unique_ptr<SharedScratch> scratch_ = std::make_unique<SharedScratch>();
  std::vector<Value> values_;  ///< [0] the input
  std::vector<Step> steps_;
  std::size_t output_ = 0;  ///< value
  ArenaPlan arena_;
  mutable Buffer memory_;
};

}  // namespace troupe::kernels
