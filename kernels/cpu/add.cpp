#include <cstddef>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::cpu {

// The comparisons are false for NaN, so that it goes through.
TROUPE_WIDE_LOOP(sum_into, (float* a, const float* b, std::size_t n), (a, b, n)) {
  for (std::size_t i = 0; i < n; ++i) a[i] += b[i];
}

TROUPE_WIDE_LOOP(sum_of, (const float* a, const float* b, float* y, std::size_t n), (a, b, y, n)) {
  for (std::size_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

TROUPE_WIDE_LOOP(relu_of_sum, (const float* a, const float* b, float* y, std::size_t n),
                 (a, b, y, n)) {
  for (std::size_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    y[i] = sum <= 0.0f ? 0.0f : sum;
  }
}

TROUPE_WIDE_LOOP(where_positive, (const float* y, const float* dy, float* dx, std::size_t n),
                 (y, dy, dx, n)) {
  for (std::size_t i = 0; i < n; ++i) dx[i] = y[i] <= 0.0f ? 0.0f : dy[i];
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
    const auto loop = relu_ ? relu_of_sum : sum_of;
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      loop(pass.inputs[0] + begin, pass.inputs[1] + begin, pass.output + begin, end - begin);
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    float* const to =
        pass.input_gradients[0] != nullptr ? pass.input_gradients[0] : pass.input_gradients[1];
    if (to == nullptr) return {};
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      where_positive(pass.output + begin, pass.output_gradient + begin, to + begin, end - begin);
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
    sum_into(a + begin, b + begin, end - begin);
  });
}

MadeKernel make_add(const KernelRequest& request) {
  return MadeKernel(std::make_unique<AddKernel>(request));
}

}  // namespace troupe::kernels::cpu
