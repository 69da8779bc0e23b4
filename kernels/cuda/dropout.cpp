#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels::cuda {

namespace {

/// Element i of the batch goes by the i-th number of the layer's stream, as on the CPU. The
/// backward pass draws them again: that is cheaper than to keep them.
class DropoutKernel final : public CudaKernel {
public:
  DropoutKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        layer_(request.layer_index()),
        probability_(std::get<Dropout>(request.layers[0].spec).probability),
        identity_(request.mode == Mode::inference || probability_ == 0.0f) {}

  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false,
            .backward_reads_output = false,
            .in_place = true,
            .passes_gradient = identity_,
            .alias = identity_};
  }

  Status make_key_memory() {
    if (identity_) return {};
    TROUPE_ASSIGN(key_, context().allocate(sizeof(PhiloxKey)));
    return {};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    TROUPE_TRY(for_each(stream.handle(), 1, DropoutKey{pass.key, layer_, key()}));
    return apply(stream, pass.input(), pass.output);
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    return apply(stream, pass.output_gradient, pass.input_gradient());
  }
  PhiloxKey* key() { return reinterpret_cast<PhiloxKey*>(key_.data()); }
  Status apply(CudaStream& stream, const float* from, float* to) {
    const std::size_t n = output_.floats;
    return for_each(stream.handle(), (n + Dropout4::kElements - 1) / Dropout4::kElements,
                    Dropout4{from, to, n, key(), probability_, 1.0f / (1.0f - probability_)});
  }

  std::size_t layer_;
  float probability_;
  bool identity_;
  Buffer key_;  ///< of the last forward pass
};

}  // namespace

MadeKernel make_dropout(Context& context, const KernelRequest& request) {
  auto kernel = std::make_unique<DropoutKernel>(context, request);
  TROUPE_TRY(kernel->make_key_memory());
  return MadeKernel(std::move(kernel));
}

}  // namespace troupe::kernels::cuda
