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
#include "kernels/internal/backend.hpp"
#include "kernels/internal/layer_kernel.hpp"
#include "kernels/model.hpp"
#include "kernels/pass_key.hpp"
#include "kernels/rank_sums.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

struct NetworkOptions {
  ComputeDevice device = {};
  KernelChoice choice = KernelChoice::automatic;
  int threads = 1;
  Mode mode = Mode::training;
  bool input_gradient = false;  ///< whether backward gives the gradient of the input too
  /// Where passes run, which outlives the network; null for one of its own.
  Stream* stream = nullptr;
  DType precision = DType::f32;  ///< as Workspace says
};

/// Says that the gradient of `parameter` is final where the stream is now.
using GradientEnqueued = std::function<Status(const ParameterInfo& parameter)>;

/// A model's layers as kernels for one batch size, with their activations.
///
/// Activations and their gradients share one block of memory: each has a place in it for as long as
/// a later kernel of the pass, forward or backward, reads it.
///
/// Memory is the device's, and so are spans and parameters; on another device than the CPU passes
/// are done when the stream is.
///
/// Threads: one at a time, any.
/// Failure: of a pass: the stream is synchronized with before the memory is let go.
class Network {
public:
  Network(Network&&) noexcept = default;
  Network& operator=(Network&&) = delete;
  ~Network() {
    // Work of a pass that failed may be under way.
    if (!steps_.empty()) (void)options_.stream->synchronize();
  }

  static Result<Network> create(const Model& model, std::int64_t batch,
                                const NetworkOptions& options);

  /// Where to put the samples before `forward`, and where the output is after it (until
  /// `backward`): row-major, batch first.
  std::span<float> input() noexcept { return floats(values_.front()); }
  std::span<const float> output() const noexcept { return floats(values_[output_]); }
  /// The input's place for a model of token ids.
  std::span<std::int32_t> ids() noexcept;

  /// Whether any of its layers is computed by a vendor's library.
  bool uses_library() const noexcept;
  /// Whether the host has no part in the middle of a pass, which may then be recorded.
  bool can_be_recorded() const noexcept;
  /// How many kernels a pass runs, reorders included; some stand for several layers.
  std::size_t kernels() const noexcept { return steps_.size(); }
  /// Bytes of activations and gradients.
  std::size_t activation_bytes() const noexcept { return memory_.size(); }
  /// Bytes that kernels share for what they need during a call.
  std::size_t scratch_bytes() const noexcept { return scratch_->size(); }

  /// `key` as ForwardPass has it. `sum` is needed if rank_sums() says so, in training.
  Status forward(const float* parameters, const PassKey* key = nullptr,
                 const SumOverRanks& sum = {});

  /// Likewise, with the output at `output`, which has room for it, instead of output(). Not for
  /// training.
  Status forward_to(const float* parameters, float* output);

  /// Where to put the output's gradient between `forward` and `backward`, and where the input's is
  /// after it (if it was asked for): row-major. Training only.
  std::span<float> output_gradient() noexcept;
  std::span<const float> input_gradient() const noexcept;

  /// Follows `forward`. Overwrites `gradients` where parameters are, and calls `enqueued` (if any)
  /// in the order of Workspace's GradientReady. Training only.
  Status backward(const float* parameters, float* gradients, const GradientEnqueued& enqueued,
                  const SumOverRanks& sum = {});

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

  Network(Model model, const NetworkOptions& options)
      : model_(std::move(model)), options_(options) {}
  Backend& backend() const { return options_.device.backend(); }
  Status plan();
  Status allocate_rank_sums();
  void plan_forward();
  void plan_backward();
  std::size_t backward_time(std::size_t step) const { return 2 * steps_.size() - step; }

  Status run_backward(Step& step, const float* parameters, float* gradients,
                      const SumOverRanks& sum);
  double* rank_sums() noexcept { return reinterpret_cast<double*>(rank_sums_.data()); }
  Result<std::span<const double>> sum_over_ranks(std::size_t count, const SumOverRanks& sum);
  bool output_is_apart() const noexcept;
  float* at(std::size_t block) const noexcept;
  std::span<float> floats(const Value& value) const noexcept;

  Model model_;
  NetworkOptions options_;
  std::unique_ptr<Stream> own_stream_;
  std::unique_ptr<SharedScratch> scratch_ = std::make_unique<SharedScratch>();
  std::vector<Value> values_;  ///< [0] the input
  std::vector<Step> steps_;
  std::size_t output_ = 0;         ///< value
  float* output_place_ = nullptr;  ///< instead of its block, during a forward_to()
  ArenaPlan arena_;
  mutable Buffer memory_;
  Buffer rank_sums_;    ///< doubles, of the kernel that has some summed over all ranks
  Buffer staged_sums_;  ///< on the host, of those that come and those that go; on the CPU none
};

}  // namespace troupe::kernels
