#include <cmath>
#include <cstring>
#include <string>

#include "kernels/cpu/internal/dnnl_support.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::cpu {

TROUPE_WIDE_LOOP(scale_row, (const float* from, float scale, float* to, std::size_t n),
                 (from, scale, to, n)) {
  for (std::size_t i = 0; i < n; ++i) to[i] = scale * from[i];
}

namespace {

using Forward = dnnl::convolution_forward;

/// A convolution at inference, and what may follow it: batch norm, the sum with another value,
/// ReLU.
///
/// A batch norm that goes by running statistics is linear in each channel, so it becomes part of
/// the convolution's weight and bias (Ioffe and Szegedy, "Batch normalization" (2015),
/// section 3.1):
///
///     s = weight_bn / sqrt(running_var + epsilon)
///     weight' = s weight,  bias' = bias_bn + s (bias - running_mean)
///
/// Parameters may be others in each pass, and so they are folded in each: that reads the weight
/// once more, which is little beside the convolution. The sum and the ReLU are done where the
/// library writes its output; a ReLU of the library makes 0 of NaN.
class FoldedConvolution final : public LayerKernel {
public:
  explicit FoldedConvolution(const KernelRequest& request)
      : name_(describe(request.layers[0].spec)),
        threads_(request.threads),
        engine_(request.scratch) {
    const Layer& layer = request.layers[0];
    weight_offset_ = request.offset_of(0);
    has_bias_ = layer.parameters.size() > 1;
    if (has_bias_) bias_offset_ = request.offset_of(1);
    for (std::size_t i = 1; i < request.layers.size(); ++i) read(request, i);
    const Shape& weight = request.model.parameters()[layer.parameters[0]].shape;
    channels_ = static_cast<std::size_t>(weight[0]);
    row_ = static_cast<std::size_t>(weight.elements()) / channels_;

    const memory::desc plain_weight = plain_desc(convolution_weight_dims(request));
    const Forward::primitive_desc made = make(request);
    is_slow_ = is_reference(made);
    inputs_ = {describe_activation(request.input().shape, made.src_desc())};
    output_ = describe_activation(request.output_shape(), made.dst_desc());
    if (adds_) inputs_.push_back(output_);

    forward_ = Bound(Forward(made), made, engine_);
    forward_.bind(DNNL_ARG_SRC, made.src_desc(), engine_);
    forward_.bind(DNNL_ARG_WEIGHTS, made.weights_desc(), engine_);
    if (with_bias()) forward_.bind(DNNL_ARG_BIAS, made.bias_desc(), engine_);
    forward_.bind(DNNL_ARG_DST, made.dst_desc(), engine_);
    staged_weight_ = Staged(plain_weight, made.weights_desc(), engine_);
    if (!folds_) return;
    folded_weight_ = engine_.scratch.add(plain_weight.get_size());
    folded_bias_ = engine_.scratch.add(channels_ * sizeof(float));
  }

  /// Whether the library has only its reference loops for it, as for some kinds of groups.
  bool is_slow() const noexcept { return is_slow_; }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override { return {.in_place = adds_, .in_place_input = 1}; }

  Status forward(const ForwardPass& pass) override {
    return guarded(name_, threads_, [&] {
      const float* weight = pass.parameters + weight_offset_;
      const float* bias = has_bias_ ? pass.parameters + bias_offset_ : nullptr;
      if (folds_) {
        fold(pass.parameters, weight, bias);
        weight = engine_.floats_at(folded_weight_);
        bias = engine_.floats_at(folded_bias_);
      }
      forward_.set(DNNL_ARG_SRC, pass.input());
      forward_.set(DNNL_ARG_WEIGHTS, staged_weight_.load(weight, engine_));
      if (bias != nullptr) forward_.set(DNNL_ARG_BIAS, bias);
      // The library adds to what is there.
      if (adds_ && pass.inputs[1] != pass.output) copy(pass.inputs[1], pass.output);
      forward_.set(DNNL_ARG_DST, pass.output);
      forward_.run(engine_);
    });
  }
  Status backward(const BackwardPass&) override {
    return {Code::internal, name_ + ": made for inference"};
  }

private:
  // Of a batch norm's parameters.
  enum : std::size_t { kWeight, kBias, kRunningMean, kRunningVariance };

  bool with_bias() const { return has_bias_ || folds_; }

  void read(const KernelRequest& request, std::size_t layer) {
    const LayerSpec& spec = request.layers[layer].spec;
    if (const auto* norm = std::get_if<BatchNorm>(&spec)) {
      folds_ = true;
      epsilon_ = norm->epsilon;
      for (std::size_t i = 0; i < 4; ++i) norm_[i] = request.offset_of(i, layer);
    }
    adds_ = adds_ || std::holds_alternative<Add>(spec);
    relu_ = relu_ || std::holds_alternative<Relu>(spec);
  }

  Forward::primitive_desc make(const KernelRequest& request) const {
    const auto any = [](const memory::dims& dims) {
      return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
    };
    const auto twice = [](std::int64_t value) { return memory::dims{value, value}; };
    dnnl::post_ops after;
    if (adds_) after.append_sum();
    if (relu_) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    dnnl::primitive_attr attr = attributes();
    attr.set_post_ops(after);
    const auto& spec = std::get<Convolution>(request.layers[0].spec);
    // Asked for inference the library takes other kernels, with the channels last, of which some
    // were measured to take twice as long (ResNet-18 on images of 32 x 32, oneDNN 2.6, AVX-512).
    return Forward::primitive_desc(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_auto,
         any(dims_of(request.input().shape)), any(convolution_weight_dims(request)),
         with_bias() ? plain_desc({static_cast<std::int64_t>(channels_)}) : memory::desc(),
         any(dims_of(request.output_shape())), twice(spec.stride), twice(spec.dilation - 1),
         twice(spec.padding), twice(spec.padding)},
        attr, engine_.engine);
  }

  void copy(const float* from, float* to) const {
    constexpr std::size_t kLeast = 1 << 14;  // floats that are not worth a thread
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      std::memcpy(to + begin, from + begin, (end - begin) * sizeof(float));
    });
  }

  void fold(const float* parameters, const float* weight, const float* bias) {
    float* const to = engine_.floats_at(folded_weight_);
    float* const bias_to = engine_.floats_at(folded_bias_);
    parallel_each(threads_, channels_, [&](std::size_t c, std::size_t) {
      const float scale = parameters[norm_[kWeight] + c] /
                          std::sqrt(parameters[norm_[kRunningVariance] + c] + epsilon_);
      scale_row(weight + c * row_, scale, to + c * row_, row_);
      const float before = bias != nullptr ? bias[c] : 0.0f;
      bias_to[c] =
          parameters[norm_[kBias] + c] + scale * (before - parameters[norm_[kRunningMean] + c]);
    });
  }

  std::string name_;
  int threads_;
  std::size_t weight_offset_ = 0, bias_offset_ = 0;
  bool has_bias_ = false;
  bool is_slow_ = false;
  bool folds_ = false, adds_ = false, relu_ = false;
  float epsilon_ = 0.0f;
  std::size_t norm_[4] = {};
  std::size_t channels_ = 0, row_ = 0;  ///< out, and the floats of one's weight
  Engine engine_;
  Bound forward_;
  Staged staged_weight_;
  std::size_t folded_weight_ = 0, folded_bias_ = 0;  ///< in the scratch
};

}  // namespace

MadeKernel make_folded_convolution(const KernelRequest& request) {
  std::unique_ptr<FoldedConvolution> kernel;
  TROUPE_TRY(guarded(describe(request.layers[0].spec), request.threads,
                     [&] { kernel = std::make_unique<FoldedConvolution>(request); }));
  if (kernel->is_slow()) return MadeKernel(nullptr);
  return MadeKernel(std::move(kernel));
}

}  // namespace troupe::kernels::cpu
