#include <cstddef>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/wide_loop.hpp"
#include "kernels/vector_ops.hpp"

namespace troupe::kernels::cpu {

// The comparison is false for NaN, so that it goes through.
TROUPE_WIDE_LOOP(relu_of_sum, (const float* a, const float* b, float* y, std::size_t n),
                 (a, b, y, n)) {
  for (std::size_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    y[i] = sum <= 0.0f ? 0.0f : sum;
  }
}

namespace {

/// Floats that are not worth a thread.
constexpr std::size_t kLeast = 1 << 14;

/// The sum of two inputs that lie alike, and the ReLU of it. Element by element, so any layout will
/// do.
class AddKernel final : public LayerKernel {
public:
  explicit AddKernel(const KernelRequest& request)
      : relu_(request.layers.size() > 1), threads_(request.threads) {
    inputs_ = {request.inputs[0].activation, request.inputs[0].activation};
    output_ = request.inputs[0].activation;
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false,
            .backward_reads_output = relu_,
            .in_place = true,
            .one_gradient = true,
            .passes_gradient = !relu_};
  }

  Status forward(const ForwardPass& pass) override {
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      const std::size_t n = end - begin;
      const float *const a = pass.inputs[0] + begin, *const b = pass.inputs[1] + begin;
      if (relu_)
        relu_of_sum(a, b, pass.output + begin, n);
      else
        kernels::add({pass.output + begin, n}, {a, n}, {b, n});
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    float* const to =
        pass.input_gradients[0] != nullptr ? pass.input_gradients[0] : pass.input_gradients[1];
    if (to == nullptr) return {};
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      relu_gradient(pass.output + begin, pass.output_gradient + begin, to + begin, end - begin);
    });
    return {};
  }

private:
  bool relu_;
  int threads_;
};

}  // namespace

void add_into(float* a, const float* b, std::size_t n, int threads) {
  parallel_for(threads, n, kLeast, [&](std::size_t begin, std::size_t end) {
    add_in_place({a + begin, end - begin}, {b + begin, end - begin});
  });
}

MadeKernel make_add(const KernelRequest& request) {
  return MadeKernel(std::make_unique<AddKernel>(request));
}

}  // namespace troupe::kernels::cpu
