#include <cstddef>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/parallel.hpp"
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
  explicit ReluKernel(const KernelRequest& request) : threads_(request.threads) {
    inputs_ = {request.input()};
    output_ = request.input();
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .in_place = true};
  }
  Status forward(const ForwardPass& pass) override {
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      relu_forward(pass.input() + begin, pass.output + begin, end - begin);
    });
    return {};
  }
  Status backward(const BackwardPass& pass) override {
    float* const to = pass.input_gradient();
    if (to == nullptr) return {};
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      relu_backward(pass.output + begin, pass.output_gradient + begin, to + begin, end - begin);
    });
    return {};
  }

private:
  /// Floats that are not worth a thread.
  static constexpr std::size_t kLeast = 1 << 14;
  int threads_;
};

}  // namespace

MadeKernel make_relu(const KernelRequest& request) {
  return MadeKernel(std::make_unique<ReluKernel>(request));
}

}  // namespace troupe::kernels::cpu
