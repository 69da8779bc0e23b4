#include <cstddef>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/activation_functions.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::cpu {

#define TROUPE_ACTIVATION(name, Function)                                                         \
  TROUPE_WIDE_LOOP(name##_forward, (const float* x, float* y, std::size_t n), (x, y, n)) {        \
    TROUPE_INDEPENDENT                                                                            \
    for (std::size_t i = 0; i < n; ++i) y[i] = Function::of(x[i]);                                \
  }                                                                                               \
  TROUPE_WIDE_LOOP(name##_backward, (const float* at, const float* dy, float* dx, std::size_t n), \
                   (at, dy, dx, n)) {                                                             \
    TROUPE_INDEPENDENT                                                                            \
    for (std::size_t i = 0; i < n; ++i) dx[i] = dy[i] * Function::slope(at[i]);                   \
  }

TROUPE_ACTIVATION(gelu_tanh, GeluTanh)
TROUPE_ACTIVATION(gelu_erf, GeluErf)
TROUPE_ACTIVATION(silu, SiluOf)
TROUPE_ACTIVATION(sigmoid, SigmoidOf)
TROUPE_ACTIVATION(tanh, TanhOf)

#undef TROUPE_ACTIVATION

void gelu(Gelu::Form form, const float* x, float* y, std::size_t n) {
  (form == Gelu::Form::tanh ? gelu_tanh_forward : gelu_erf_forward)(x, y, n);
}

namespace {

struct Loops {
  void (*forward)(const float* x, float* y, std::size_t n);
  void (*backward)(const float* at, const float* dy, float* dx, std::size_t n);
  bool by_output = false;  ///< `at` is the output, else the input
  bool keeps_zero = true;  ///< f(0) = 0, so that what only fills up a layout's blocks stays zero
};

struct LoopsOf {
  Loops operator()(const Gelu& spec) const {
    return spec.form == Gelu::Form::tanh ? Loops{gelu_tanh_forward, gelu_tanh_backward}
                                         : Loops{gelu_erf_forward, gelu_erf_backward};
  }
  Loops operator()(const Silu&) const { return {silu_forward, silu_backward}; }
  Loops operator()(const Sigmoid&) const {
    return {sigmoid_forward, sigmoid_backward, /*by_output=*/true, /*keeps_zero=*/false};
  }
  Loops operator()(const Tanh&) const { return {tanh_forward, tanh_backward, /*by_output=*/true}; }
  template <class Other>
  Loops operator()(const Other&) const {
    return {};
  }
};

class ActivationKernel final : public LayerKernel {
public:
  ActivationKernel(const KernelRequest& request, const Loops& loops)
      : loops_(loops), threads_(request.threads) {
    inputs_ = {loops.keeps_zero ? request.input() : plain_activation(request.input().shape)};
    output_ = inputs_[0];
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = !loops_.by_output,
            .backward_reads_output = loops_.by_output,
            .in_place = true};
  }
  Status forward(const ForwardPass& pass) override {
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      loops_.forward(pass.input() + begin, pass.output + begin, end - begin);
    });
    return {};
  }
  Status backward(const BackwardPass& pass) override {
    float* const to = pass.input_gradient();
    if (to == nullptr) return {};
    const float* const at = loops_.by_output ? pass.output : pass.input();
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      loops_.backward(at + begin, pass.output_gradient + begin, to + begin, end - begin);
    });
    return {};
  }

private:
  /// Floats that are not worth a thread.
  static constexpr std::size_t kLeast = 1 << 12;
  Loops loops_;
  int threads_;
};

}  // namespace

MadeKernel make_activation(const KernelRequest& request) {
  const Loops loops = std::visit(LoopsOf{}, request.layers[0].spec);
  if (loops.forward == nullptr) return MadeKernel(nullptr);
  return MadeKernel(std::make_unique<ActivationKernel>(request, loops));
}

}  // namespace troupe::kernels::cpu
