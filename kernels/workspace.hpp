#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/compute_device.hpp"
#include "kernels/loss.hpp"
#include "kernels/model.hpp"
#include "kernels/pass_key.hpp"
#include "kernels/rank_sums.hpp"
#include "kernels/tensor.hpp"
#include "kernels/weights.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Which kernels compute a layer.
enum class KernelChoice : std::uint8_t {
  automatic,  ///< per layer, by what was measured to be faster
  portable,   ///< our own: the same bits on every CPU, with any number of threads
  library,    ///< the vendor's library: the same bits on CPUs of one instruction set
};

/// What changes results, and only then what changes speed.
struct WorkspaceOptions {
  /// u8 images become (x / 255 - mean) / deviation; f32 images are taken as they are. One number
  /// for all channels, or one for each: the first dimension of the model's input. The defaults are
  /// MNIST's.
  std::vector<float> input_mean = {0.1307f};
  std::vector<float> input_deviation = {0.3081f};
  Loss loss = Loss::softmax_cross_entropy;
  /// softmax_cross_entropy: the share of each label that all classes get in equal parts, 0 to below
  /// 1. Szegedy et al., "Rethinking the Inception architecture" (2015), section 7.
  float label_smoothing = 0.0f;
  /// softmax_cross_entropy: a label whose samples (or tokens) count for nothing, say that of
  /// padding.
  std::optional<std::int32_t> ignored_label = {};
  /// Threads of one pass. Part of the result: another number may give other last bits.
  int threads = 1;
  KernelChoice kernels = KernelChoice::automatic;
  ComputeDevice device = {};
  /// What convolutions and linear layers round the factors of their products to: f32 (nothing),
  /// bf16 or f16. Sums, all other layers, weights and gradients stay f32, as in mixed precision
  /// training: Micikevicius et al., "Mixed precision training" (2017). On CPUs bf16 needs AVX-512.
  DType precision = DType::f32;

  /// Errors: `invalid_argument` naming the field, `not_supported` for a precision that the device
  /// does not have. Whether there are as many means as channels is
  /// for Workspace::create to say.
  Status validate() const;
};

/// Says that the gradient of `parameter` is final. Called on the thread of the pass, once for each
/// parameter, from the last of the model to the first: all floats from `parameter.offset` to the
/// end of the gradients are then final, and may be sent while the pass goes on.
using GradientReady = std::function<void(const ParameterInfo& parameter)>;

/// What there is to say of one pass.
struct StepOptions {
  GradientReady ready = {};
  PassKey key = {};         ///< what dropout goes by
  float loss_scale = 1.0f;  ///< what gradients are multiplied by, at the loss
  /// Needed by models with synchronized batch norms (see rank_sums()), called on the pass's thread.
  SumOverRanks sum_over_ranks = {};
};

/// How training passes were given to a device other than the host.
struct PassStatistics {
  std::uint64_t passes = 0;
  /// Of them as what was recorded of one before, which takes the host a few calls.
  std::uint64_t replayed = 0;
  /// Why the last pass that was to be recorded was not; empty if none was in the way.
  std::string not_recorded = {};
};

/// What one rank needs to run a model: activations, cached primitives, packed weights.
///
/// The result of a pass depends only on the parameters, the samples and the options: not on what
/// ran before, on which thread it runs, or on what runs beside it.
///
/// Ownership: owns its memory; weights and samples are borrowed for a call. Kernels are made at
///            the first pass of a batch size and kept for the few sizes used last.
/// Threads:   one call at a time, on any thread. Any number of workspaces may run at once with the
///            same weights. With `threads` above 1 a call uses the OpenMP pool of its thread,
///            whose size it sets and puts back.
/// Device:    host memory is copied to and from it within a call; gradients come back while those
///            of earlier layers are computed, if they go to ComputeDevice::allocate_staging()'s
///            memory (a copy to other memory waits). Weights of a TrainingState are read where they
///            lie, after its last update, and left alone when a call returns.
/// Failure:   `shape_mismatch` and `invalid_argument` name what was given and what is needed, and
///            leave the gradients untouched; `resource_exhausted`. It can be used again after any.
class Workspace {
public:
  /// For the softmax cross entropy the model's output must be [classes], or [tokens, classes] for a
  /// label on each. Errors: `shape_mismatch` for another, `invalid_argument` for means or
  /// deviations that are neither one nor one a channel, or as `options.validate()`.
  static Result<Workspace> create(Model model, WorkspaceOptions options = {});

  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  ~Workspace();

  /// Gradient of the SUM of the labels' losses (not their mean: the sum over all ranks is scaled
  /// once, by 1 / global batch), written to `gradients`: `model().flat_size()` floats laid out as
  /// the parameters, the padding between them zeroed.
  ///
  /// `images`: u8 or f32, [batch] + the model's input, whose channel may be left out if it is one;
  /// for a model of token ids i32, each 0..vocabulary-1.
  /// `labels`: as the Loss says, in kernels/loss.hpp; each is a class or ignored.
  /// Views of any strides will do: what does not lie row-major is copied first.
  /// Error: `failed_precondition` for a model with synchronized batch norms without sum_over_ranks,
  /// and what that returns.
  Result<LossStats> forward_backward(const Weights& weights, const Tensor& images,
                                     const Tensor& labels, std::span<float> gradients,
                                     const StepOptions& step = {});

  /// The loss alone, over any number of samples.
  Result<LossStats> evaluate(const Weights& weights, const Tensor& images, const Tensor& labels);

  /// The outputs (logits, for the softmax cross entropy): f32 [batch] + the model's output.
  Result<Tensor> predict(const Weights& weights, const Tensor& images);

  const Model& model() const noexcept;
  const WorkspaceOptions& options() const noexcept;
  const PassStatistics& statistics() const noexcept;

private:
  struct State;
  explicit Workspace(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::kernels
