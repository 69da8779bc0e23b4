#include <cstddef>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::cpu {

// Both comparisons are false for NaN, so that it goes through.
TROUPE_WIDE_LOOP(relu_forward, (const float* x, float* y, std::size_t n), (x, y, n)) {
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] <= 0.0f ? 0.0f : x[i];
}

TROUPE_WIDE_LOOP(relu_backward, (const float* y, const float* dy, float* dx, std::size_t n),
                 (y, dy, dx, n)) {
  for (std::size_t i = 0; i < n; ++i) dx[i] = y[i] <= 0.0f ? 0.0f : dy[i];
}

void relu_gradient(const float* y, const float* dy, float* dx, std::size_t n) {
  relu_backward(y, dy, dx, n);
}

namespace {

/// Element by element, so any layout will do.
class ReluKernel final : public LayerKernel {
public:
  explicit ReluKernel(const Activation& input) {
    inputs_ = {input};
    output_ = input;
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .in_place = true};
  }
  Status forward(const ForwardPass& pass) override {
    relu_forward(pass.input(), pass.output, output_.floats);
    return {};
  }
  Status backward(const BackwardPass& pass) override {
    if (pass.input_gradient() != nullptr)
      relu_backward(pass.output, pass.output_gradient, pass.input_gradient(), output_.floats);
    return {};
  }
};

}  // namespace

MadeKernel make_relu(const KernelRequest& request) {
  return MadeKernel(std::make_unique<ReluKernel>(request.input()));
}

}  // namespace troupe::kernels::cpu
