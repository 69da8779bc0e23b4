#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/cpu/internal/dnnl_support.hpp"

namespace troupe::kernels::cpu {

namespace {

using dnnl::batch_normalization_backward;
using dnnl::batch_normalization_forward;
using dnnl::normalization_flags;

// Of the layer's parameters.
enum : std::size_t { kWeight, kBias, kRunningMean, kRunningVariance };

/// A batch norm, alone or with the ReLU that follows it. The library keeps a mask of where the ReLU
/// was open, so that the backward pass reads no output.
class DnnlBatchNorm final : public LayerKernel {
public:
  explicit DnnlBatchNorm(const KernelRequest& request)
      : name_(describe(request.layers[0].spec)),
        threads_(request.threads),
        channels_(static_cast<std::size_t>(request.input().shape[1])),
        batch_(static_cast<float>(request.batch())),
        values_(request.input().shape.elements() / request.input().shape[1]),
        training_(request.mode == Mode::training),
        engine_(request.scratch) {
    const auto& spec = std::get<BatchNorm>(request.layers[0].spec);
    for (std::size_t i = 0; i < 4; ++i) offsets_[i] = request.offset_of(i);
    // Samples side by side are no layout of the library's.
    const Activation input = request.input().layout == Activation::Layout::interleaved
                                 ? plain_activation(request.input().shape)
                                 : request.input();
    inputs_ = {input};
    output_ = input;
    const memory::desc data = describe_memory(input);
    auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
    if (request.layers.size() > 1) flags |= normalization_flags::fuse_norm_relu;
    if (!training_) flags |= normalization_flags::use_global_stats;

    const batch_normalization_forward::primitive_desc forward(
        {training_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, data,
         spec.epsilon, flags},
        attributes(), engine_.engine);
    forward_ = Bound(batch_normalization_forward(forward), forward, engine_);
    const memory::desc vector = plain_desc({static_cast<std::int64_t>(channels_)});
    forward_.bind(DNNL_ARG_SRC, data, engine_);
    forward_.bind(DNNL_ARG_DST, data, engine_);
    forward_.bind(DNNL_ARG_SCALE, vector, engine_);
    forward_.bind(DNNL_ARG_SHIFT, vector, engine_);
    if (!training_) {
      forward_.bind(DNNL_ARG_MEAN, vector, engine_);
      forward_.bind(DNNL_ARG_VARIANCE, vector, engine_);
      return;
    }
    mean_ = memory(vector, engine_.engine);
    variance_ = memory(vector, engine_.engine);
    forward_.bind(DNNL_ARG_MEAN, mean_);
    forward_.bind(DNNL_ARG_VARIANCE, variance_);

    engine_.scratch.restart();
    const batch_normalization_backward::primitive_desc backward(
        {dnnl::prop_kind::backward, data, data, spec.epsilon, flags}, attributes(), engine_.engine,
        forward);
    backward_ = Bound(batch_normalization_backward(backward), backward, engine_);
    backward_.bind(DNNL_ARG_SRC, data, engine_);
    backward_.bind(DNNL_ARG_MEAN, mean_);
    backward_.bind(DNNL_ARG_VARIANCE, variance_);
    backward_.bind(DNNL_ARG_DIFF_DST, data, engine_);
    backward_.bind(DNNL_ARG_DIFF_SRC, data, engine_);
    backward_.bind(DNNL_ARG_SCALE, vector, engine_);
    backward_.bind(DNNL_ARG_SHIFT, vector, engine_);
    backward_.bind(DNNL_ARG_DIFF_SCALE, vector, engine_);
    backward_.bind(DNNL_ARG_DIFF_SHIFT, vector, engine_);
    if (request.layers.size() > 1) {
      const memory mask(forward.workspace_desc(), engine_.engine);
      forward_.bind(DNNL_ARG_WORKSPACE, mask);
      backward_.bind(DNNL_ARG_WORKSPACE, mask);
    }
    // Without anything before it the input's gradient is still computed, to nowhere.
    if (!request.input_gradient()) unwanted_ = engine_.scratch.add(data.get_size());
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

  Status forward(const ForwardPass& pass) override {
    return guarded(name_, threads_, [&] {
      forward_.set(DNNL_ARG_SRC, pass.input());
      forward_.set(DNNL_ARG_DST, pass.output);
      forward_.set(DNNL_ARG_SCALE, pass.parameters + offsets_[kWeight]);
      forward_.set(DNNL_ARG_SHIFT, pass.parameters + offsets_[kBias]);
      if (!training_) {
        forward_.set(DNNL_ARG_MEAN, pass.parameters + offsets_[kRunningMean]);
        forward_.set(DNNL_ARG_VARIANCE, pass.parameters + offsets_[kRunningVariance]);
      }
      forward_.run(engine_);
    });
  }

  Status backward(const BackwardPass& pass) override {
    return guarded(name_, threads_, [&] {
      backward_.set(DNNL_ARG_SRC, pass.input());
      backward_.set(DNNL_ARG_DIFF_DST, pass.output_gradient);
      backward_.set(DNNL_ARG_DIFF_SRC, pass.input_gradient() != nullptr
                                           ? pass.input_gradient()
                                           : engine_.floats_at(unwanted_));
      backward_.set(DNNL_ARG_SCALE, pass.parameters + offsets_[kWeight]);
      backward_.set(DNNL_ARG_SHIFT, pass.parameters + offsets_[kBias]);
      backward_.set(DNNL_ARG_DIFF_SCALE, pass.gradients + offsets_[kWeight]);
      backward_.set(DNNL_ARG_DIFF_SHIFT, pass.gradients + offsets_[kBias]);
      backward_.run(engine_);
    });
  }

  Status add_statistics(const StatisticsPass& pass) const override {
    if (!training_) return {};
    const auto* const mean = static_cast<const float*>(mean_.get_data_handle());
    const auto* const variance = static_cast<const float*>(variance_.get_data_handle());
    const auto n = static_cast<double>(values_);
    const auto unbiased = static_cast<float>(n / (n - 1.0));
    for (std::size_t c = 0; c < channels_; ++c) {
      pass.gradients[offsets_[kRunningMean] + c] = batch_ * mean[c];
      pass.gradients[offsets_[kRunningVariance] + c] = batch_ * (variance[c] * unbiased);
    }
    return {};
  }

private:
  std::string name_;
  int threads_;
  std::size_t channels_;
  float batch_;
  std::int64_t values_;  ///< that a mean is over
  bool training_;
  std::size_t offsets_[4] = {};
  Engine engine_;
  Bound forward_, backward_;
  memory mean_, variance_;
  std::size_t unwanted_ = 0;  ///< in the scratch
};

}  // namespace

MadeKernel make_dnnl_batch_norm(const KernelRequest& request) {
  const std::string what = describe(request.layers[0].spec);
  const Shape& input = request.input().shape;
  if (request.mode == Mode::training && input.elements() == input[1])
    return Error{Code::invalid_argument,
                 fmt::format("{}: one value per channel has no variance; a rank's batch of {} at "
                             "this size is too small to train with",
                             what, to_string(input))};
  std::unique_ptr<LayerKernel> kernel;
  TROUPE_TRY(
      guarded(what, request.threads, [&] { kernel = std::make_unique<DnnlBatchNorm>(request); }));
  return kernel;
}

}  // namespace troupe::kernels::cpu
