#include <string>

#include "kernels/cpu/internal/dnnl_support.hpp"

namespace troupe::kernels::cpu {

namespace {

struct Windows {
  bool max;
  memory::dims kernel, stride, padding;
};

Windows windows_of(const Layer& layer) {
  if (std::holds_alternative<GlobalAveragePooling>(layer.spec)) {
    const memory::dims whole{layer.input()[1], layer.input()[2]};
    return {false, whole, whole, {0, 0}};
  }
  const auto& spec = std::get<Pooling>(layer.spec);
  return {spec.kind == Pooling::Kind::max,
          {spec.kernel, spec.kernel},
          {spec.stride, spec.stride},
          {spec.padding, spec.padding}};
}

class DnnlPooling final : public LayerKernel {
public:
  explicit DnnlPooling(const KernelRequest& request)
      : name_(describe(request.layers[0].spec)),
        threads_(request.threads),
        engine_(request.scratch) {
    const Windows spec = windows_of(request.layers[0]);
    const auto algorithm =
        spec.max ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_include_padding;
    const Shape output = request.output_shape();
    const memory::dims &kernel = spec.kernel, &stride = spec.stride, &padding = spec.padding;
    const memory::desc source = describe_memory(request.input());
    const memory::desc any(dims_of(output), memory::data_type::f32, memory::format_tag::any);

    const dnnl::pooling_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm, source, any, stride, kernel, padding,
         padding},
        attributes(), engine_.engine);
    inputs_ = {describe_activation(request.input().shape, source)};
    output_ = describe_activation(output, forward.dst_desc());
    forward_ = Bound(dnnl::pooling_forward(forward), forward, engine_);
    forward_.bind(DNNL_ARG_SRC, source, engine_);
    forward_.bind(DNNL_ARG_DST, forward.dst_desc(), engine_);

    engine_.scratch.restart();
    const dnnl::pooling_backward::primitive_desc backward(
        {algorithm, source, forward.dst_desc(), stride, kernel, padding, padding}, attributes(),
        engine_.engine, forward);
    backward_ = Bound(dnnl::pooling_backward(backward), backward, engine_);
    backward_.bind(DNNL_ARG_DIFF_DST, forward.dst_desc(), engine_);
    backward_.bind(DNNL_ARG_DIFF_SRC, source, engine_);

    if (!spec.max) return;
    const memory maxima(forward.workspace_desc(), engine_.engine);
    forward_.bind(DNNL_ARG_WORKSPACE, maxima);
    backward_.bind(DNNL_ARG_WORKSPACE, maxima);
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }

  Status forward(const ForwardPass& pass) override {
    return guarded(name_, threads_, [&] {
      forward_.set(DNNL_ARG_SRC, pass.input());
      forward_.set(DNNL_ARG_DST, pass.output);
      forward_.run(engine_);
    });
  }

  Status backward(const BackwardPass& pass) override {
    if (pass.input_gradient() == nullptr) return {};
    return guarded(name_, threads_, [&] {
      backward_.set(DNNL_ARG_DIFF_DST, pass.output_gradient);
      backward_.set(DNNL_ARG_DIFF_SRC, pass.input_gradient());
      backward_.run(engine_);
    });
  }

private:
  std::string name_;
  int threads_;
  Engine engine_;
  Bound forward_, backward_;
};

}  // namespace

MadeKernel make_dnnl_pooling(const KernelRequest& request) {
  std::unique_ptr<LayerKernel> kernel;
  TROUPE_TRY(guarded(describe(request.layers[0].spec), request.threads,
                     [&] { kernel = std::make_unique<DnnlPooling>(request); }));
  return kernel;
}

}  // namespace troupe::kernels::cpu
