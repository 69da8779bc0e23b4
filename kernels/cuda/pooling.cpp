#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/pooling_bodies.hpp"

namespace troupe::kernels::cuda {

namespace {

Windows<StridedAxis> strided_windows(const Layer& layer) {
  const Shape &in = layer.input(), &out = layer.output;
  if (std::holds_alternative<GlobalAveragePooling>(layer.spec))
    return {{in[1], 1, in[1], in[1], 0}, {in[2], 1, in[2], in[2], 0}};
  const auto& spec = std::get<Pooling>(layer.spec);
  return {{in[1], out[1], spec.kernel, spec.stride, spec.padding},
          {in[2], out[2], spec.kernel, spec.stride, spec.padding}};
}

Windows<AdaptiveAxis> adaptive_windows(const Layer& layer) {
  const Shape &in = layer.input(), &out = layer.output;
  return {{in[1], out[1]}, {in[2], out[2]}};
}

template <class Axis>
class AveragePoolingKernel final : public CudaKernel {
public:
  AveragePoolingKernel(Context& context, const KernelRequest& request, const Windows<Axis>& windows)
      : CudaKernel(context, request), windows_(windows) {}
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each(stream.handle(), output_.floats,
                    AveragePoolingForward<Axis>{windows_, pass.input(), pass.output});
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    return for_each(
        stream.handle(), inputs_[0].floats,
        AveragePoolingBackward<Axis>{windows_, pass.output_gradient, pass.input_gradient()});
  }

  Windows<Axis> windows_;
};

template <class Axis>
class MaxPoolingKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request,
                         const Windows<Axis>& windows) {
    auto kernel = std::make_unique<MaxPoolingKernel>(context, request, windows);
    TROUPE_ASSIGN(kernel->chosen_, context.allocate(kernel->output_.floats * sizeof(std::int32_t)));
    return MadeKernel(std::move(kernel));
  }

  MaxPoolingKernel(Context& context, const KernelRequest& request, const Windows<Axis>& windows)
      : CudaKernel(context, request), windows_(windows) {}
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each(stream.handle(), output_.floats,
                    MaxPoolingForward<Axis>{windows_, pass.input(), pass.output, chosen()});
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    return for_each(
        stream.handle(), inputs_[0].floats,
        MaxPoolingBackward<Axis>{windows_, chosen(), pass.output_gradient, pass.input_gradient()});
  }

  std::int32_t* chosen() { return reinterpret_cast<std::int32_t*>(chosen_.data()); }

  Windows<Axis> windows_;
  Buffer chosen_;  ///< of the last forward pass, for each window
};

template <class Axis>
MadeKernel make(Context& context, const KernelRequest& request, Pooling::Kind kind,
                const Windows<Axis>& windows) {
  if (kind == Pooling::Kind::max) return MaxPoolingKernel<Axis>::make(context, request, windows);
  return MadeKernel(std::make_unique<AveragePoolingKernel<Axis>>(context, request, windows));
}

}  // namespace

MadeKernel make_pooling(Context& context, const KernelRequest& request) {
  const Layer& layer = request.layers[0];
  if (const auto* const spec = std::get_if<AdaptivePooling>(&layer.spec))
    return make(context, request, spec->kind, adaptive_windows(layer));
  const auto* const spec = std::get_if<Pooling>(&layer.spec);
  return make(context, request, spec == nullptr ? Pooling::Kind::average : spec->kind,
              strided_windows(layer));
}

}  // namespace troupe::kernels::cuda
