#include <algorithm>
#include <string>

#include "kernels/cpu/internal/dnnl_support.hpp"

namespace troupe::kernels::cpu {

namespace {

/// What oneDNN calls the two layers with a weight and a bias.
struct ConvolutionTypes {
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;
};
struct LinearTypes {
  using Forward = dnnl::inner_product_forward;
  using BackwardData = dnnl::inner_product_backward_data;
  using BackwardWeights = dnnl::inner_product_backward_weights;
};

using memory_desc = memory::desc;

using Type = memory::data_type;

memory_desc any_layout(const memory::dims& dims, Type type) {
  return {dims, type, memory::format_tag::any};
}

/// The same layout of elements of another type.
memory_desc with_type(memory_desc description, Type type) {
  description.data.data_type = dnnl::memory::convert_to_c(type);
  return description;
}

/// A convolution or a linear layer: forward, gradient of the input, gradient of the weights. The
/// library picks the layouts of activations and weights; weights are brought there once per pass.
///
/// With another `type` than f32 the two factors of each product are rounded to it first; sums are
/// in f32, and so is what comes and goes.
template <class Types>
class DnnlAffine final : public LayerKernel {
public:
  using Forward = typename Types::Forward;
  using BackwardData = typename Types::BackwardData;
  using BackwardWeights = typename Types::BackwardWeights;

  /// `source` and `destination` as this takes and gives them, in the layout `any` or not.
  DnnlAffine(const KernelRequest& request, Type type, const memory_desc& source,
             const memory_desc& destination)
      : name_(describe(request.layers[0].spec)),
        threads_(request.threads),
        type_(type),
        engine_(request.scratch) {
    const Layer& layer = request.layers[0];
    weight_offset_ = request.offset_of(0);
    has_bias_ = layer.parameters.size() > 1;
    if (has_bias_) bias_offset_ = request.offset_of(1);
    const memory::dims weight_dims = weight_dims_of(request);
    const memory_desc bias_desc = has_bias_ ? plain_desc({destination.dims()[1]}) : memory_desc();
    const memory_desc plain_weight = plain_desc(weight_dims);

    Made made = make(request, source, weight_dims, bias_desc, destination);
    // Some combinations of layouts are left to the library's reference loops; with plain ones it
    // multiplies matrices.
    if (made.is_slow())
      made = make(request, plain_desc(source.dims()), weight_dims, bias_desc,
                  plain_desc(destination.dims()));
    inputs_ = {activation_of(request.input().shape, with_type(made.forward.src_desc(), Type::f32))};
    output_ = activation_of(request.output_shape(), made.forward.dst_desc());
    bind_forward(made.forward, plain_weight, bias_desc);
    if (request.mode == Mode::inference) return;
    engine_.scratch.restart();
    bind_backward_weights(made.weights, plain_weight, bias_desc);
    // The gradient of the output that was rounded for the weights serves for the input too.
    if (type_ == Type::f32) engine_.scratch.restart();
    if (request.input_gradient()) bind_backward_data(made.data, plain_weight);
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

  Status forward(const ForwardPass& pass) override {
    return guarded(name_, threads_, [&] {
      forward_.set(DNNL_ARG_SRC, forward_source_.load(pass.input(), engine_));
      forward_.set(DNNL_ARG_WEIGHTS,
                   forward_weight_.load(pass.parameters + weight_offset_, engine_));
      if (has_bias_) forward_.set(DNNL_ARG_BIAS, pass.parameters + bias_offset_);
      forward_.set(DNNL_ARG_DST, pass.output);
      forward_.run(engine_);
    });
  }

  Status backward(const BackwardPass& pass) override {
    return guarded(name_, threads_, [&] {
      float* const weight = pass.gradients + weight_offset_;
      const float* const gradient = output_gradient_.load(pass.output_gradient, engine_);
      backward_weights_.set(DNNL_ARG_SRC, backward_source_.load(pass.input(), engine_));
      backward_weights_.set(DNNL_ARG_DIFF_DST, gradient);
      backward_weights_.set(DNNL_ARG_DIFF_WEIGHTS, weight_gradient_.target(weight, engine_));
      if (has_bias_) backward_weights_.set(DNNL_ARG_DIFF_BIAS, pass.gradients + bias_offset_);
      backward_weights_.run(engine_);
      weight_gradient_.store(weight, engine_);
      if (pass.input_gradient() == nullptr) return;
      backward_data_.set(DNNL_ARG_DIFF_DST, gradient);
      backward_data_.set(DNNL_ARG_WEIGHTS,
                         backward_weight_.load(pass.parameters + weight_offset_, engine_));
      backward_data_.set(DNNL_ARG_DIFF_SRC, pass.input_gradient());
      backward_data_.run(engine_);
    });
  }

private:
  struct Made {
    typename Forward::primitive_desc forward;
    typename BackwardWeights::primitive_desc weights;
    typename BackwardData::primitive_desc data;  ///< empty unless the input's gradient is wanted

    bool is_slow() const {
      return is_reference(forward) || is_reference(weights) || (data && is_reference(data));
    }
  };

  Made make(const KernelRequest& request, const memory_desc& source,
            const memory::dims& weight_dims, const memory_desc& bias,
            const memory_desc& destination) {
    const Layer& layer = request.layers[0];
    const memory_desc weight = any_layout(weight_dims, type_);
    Made made;
    made.forward = {forward_desc(layer, with_type(source, type_), weight, bias, destination),
                    attributes(), engine_.engine};
    // The passes back must take the activations as the forward pass left them.
    const memory_desc from = made.forward.src_desc();
    const memory_desc to = with_type(made.forward.dst_desc(), type_);
    made.weights = {weights_desc(layer, from, any_layout(weight_dims, Type::f32), bias, to),
                    attributes(), engine_.engine, made.forward};
    if (request.input_gradient())
      made.data = {data_desc(layer, with_type(from, Type::f32), weight, to), attributes(),
                   engine_.engine, made.forward};
    return made;
  }

  /// A linear layer's rows are all that is not features.
  static Activation activation_of(const Shape& shape, const memory_desc& description) {
    return kConvolution ? describe_activation(shape, description) : plain_activation(shape);
  }

  static constexpr bool kConvolution = std::is_same_v<Types, ConvolutionTypes>;
  static memory::dims weight_dims_of(const KernelRequest& request) {
    if constexpr (kConvolution) return convolution_weight_dims(request);
    return dims_of(request.model.parameters()[request.layers[0].parameters[0]].shape);
  }
  static memory::dims twice(std::int64_t value) { return {value, value}; }

  static auto forward_desc(const Layer& layer, const memory_desc& source, const memory_desc& weight,
                           const memory_desc& bias, const memory_desc& destination) {
    if constexpr (kConvolution) {
      const auto& spec = std::get<Convolution>(layer.spec);
      return typename Forward::desc(dnnl::prop_kind::forward_training,
                                    dnnl::algorithm::convolution_auto, source, weight, bias,
                                    destination, twice(spec.stride), twice(spec.dilation - 1),
                                    twice(spec.padding), twice(spec.padding));
    } else {
      return typename Forward::desc(dnnl::prop_kind::forward_training, source, weight, bias,
                                    destination);
    }
  }
  static auto weights_desc(const Layer& layer, const memory_desc& source, const memory_desc& weight,
                           const memory_desc& bias, const memory_desc& destination) {
    if constexpr (kConvolution) {
      const auto& spec = std::get<Convolution>(layer.spec);
      return typename BackwardWeights::desc(
          dnnl::algorithm::convolution_auto, source, weight, bias, destination, twice(spec.stride),
          twice(spec.dilation - 1), twice(spec.padding), twice(spec.padding));
    } else {
      return typename BackwardWeights::desc(source, weight, bias, destination);
    }
  }
  static auto data_desc(const Layer& layer, const memory_desc& source, const memory_desc& weight,
                        const memory_desc& destination) {
    if constexpr (kConvolution) {
      const auto& spec = std::get<Convolution>(layer.spec);
      return typename BackwardData::desc(dnnl::algorithm::convolution_auto, source, weight,
                                         destination, twice(spec.stride), twice(spec.dilation - 1),
                                         twice(spec.padding), twice(spec.padding));
    } else {
      return typename BackwardData::desc(source, weight, destination);
    }
  }

  void bind_forward(const typename Forward::primitive_desc& made, const memory_desc& plain_weight,
                    const memory_desc& bias) {
    forward_ = Bound(Forward(made), made, engine_);
    forward_.bind(DNNL_ARG_SRC, made.src_desc(), engine_);
    forward_.bind(DNNL_ARG_WEIGHTS, made.weights_desc(), engine_);
    if (has_bias_) forward_.bind(DNNL_ARG_BIAS, bias, engine_);
    forward_.bind(DNNL_ARG_DST, made.dst_desc(), engine_);
    forward_source_ = Staged(with_type(made.src_desc(), Type::f32), made.src_desc(), engine_);
    forward_weight_ = Staged(plain_weight, made.weights_desc(), engine_);
  }
  void bind_backward_weights(const typename BackwardWeights::primitive_desc& made,
                             const memory_desc& plain_weight, const memory_desc& bias) {
    backward_weights_ = Bound(BackwardWeights(made), made, engine_);
    backward_weights_.bind(DNNL_ARG_SRC, made.src_desc(), engine_);
    backward_weights_.bind(DNNL_ARG_DIFF_DST, made.diff_dst_desc(), engine_);
    backward_weights_.bind(DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc(), engine_);
    if (has_bias_) backward_weights_.bind(DNNL_ARG_DIFF_BIAS, bias, engine_);
    backward_source_ = Staged(with_type(made.src_desc(), Type::f32), made.src_desc(), engine_);
    output_gradient_ =
        Staged(with_type(made.diff_dst_desc(), Type::f32), made.diff_dst_desc(), engine_);
    weight_gradient_ = Staged(plain_weight, made.diff_weights_desc(), engine_);
  }
  void bind_backward_data(const typename BackwardData::primitive_desc& made,
                          const memory_desc& plain_weight) {
    backward_data_ = Bound(BackwardData(made), made, engine_);
    backward_data_.bind(DNNL_ARG_DIFF_DST, made.diff_dst_desc(), engine_);
    backward_data_.bind(DNNL_ARG_WEIGHTS, made.weights_desc(), engine_);
    backward_data_.bind(DNNL_ARG_DIFF_SRC, made.diff_src_desc(), engine_);
    backward_weight_ = Staged(plain_weight, made.weights_desc(), engine_);
  }

  std::string name_;
  int threads_;
  Type type_;
  std::size_t weight_offset_ = 0;
  std::size_t bias_offset_ = 0;
  bool has_bias_ = false;
  Engine engine_;
  Bound forward_, backward_data_, backward_weights_;
  Staged forward_source_, forward_weight_;
  Staged backward_source_, output_gradient_, backward_weight_, weight_gradient_;
};

}  // namespace

namespace {

MadeKernel make_convolution(const KernelRequest& request, Type type) {
  std::unique_ptr<LayerKernel> kernel;
  TROUPE_TRY(guarded(describe(request.layers[0].spec), request.threads, [&] {
    kernel = std::make_unique<DnnlAffine<ConvolutionTypes>>(
        request, type, any_layout(dims_of(request.input().shape), Type::f32),
        any_layout(dims_of(request.output_shape()), Type::f32));
  }));
  return kernel;
}

/// The features of a shape are the last axis.
memory_desc rows_of(const Shape& shape) {
  const std::int64_t features = shape[shape.rank() - 1];
  return plain_desc({shape.elements() / features, features});
}

MadeKernel make_linear(const KernelRequest& request, Type type) {
  std::unique_ptr<LayerKernel> kernel;
  TROUPE_TRY(guarded(describe(request.layers[0].spec), request.threads, [&] {
    kernel = std::make_unique<DnnlAffine<LinearTypes>>(
        request, type, rows_of(request.input().shape), rows_of(request.output_shape()));
  }));
  return kernel;
}

}  // namespace

MadeKernel make_dnnl_convolution(const KernelRequest& request) {
  return make_convolution(request, Type::f32);
}
MadeKernel make_bf16_convolution(const KernelRequest& request) {
  return make_convolution(request, Type::bf16);
}
MadeKernel make_dnnl_linear(const KernelRequest& request) {
  return make_linear(request, Type::f32);
}
MadeKernel make_bf16_linear(const KernelRequest& request) {
  // The library has no sum of a weight's gradient and another's.
  if (request.adds_gradient(0)) return MadeKernel(nullptr);
  return make_linear(request, Type::bf16);
}

}  // namespace troupe::kernels::cpu
