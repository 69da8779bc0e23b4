#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/cpu/internal/portable.hpp"
#include "kernels/internal/dropout_key.hpp"
#include "kernels/internal/wide_loop.hpp"
#include "kernels/internal/wide_math.hpp"
#include "kernels/philox.hpp"

namespace troupe::kernels::cpu {

TROUPE_WIDE_LOOP(multiply, (const float* x, const float* factors, float* y, std::size_t n),
                 (x, factors, y, n)) {
  TROUPE_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * factors[i];
}

namespace {

/// Element i of the batch goes by the i-th number of the layer's stream.
class DropoutKernel final : public LayerKernel {
public:
  static MadeKernel make(const KernelRequest& request) {
    auto kernel = std::make_unique<DropoutKernel>(request);
    const std::size_t numbers = kernel->identity_ ? 0 : kernel->output_.floats;
    TROUPE_ASSIGN(kernel->factors_, Scratch::zeros(static_cast<Index>(numbers)));
    return MadeKernel(std::move(kernel));
  }

  explicit DropoutKernel(const KernelRequest& request)
      : threads_(request.threads),
        layer_(request.layer_index()),
        probability_(std::get<Dropout>(request.layers[0].spec).probability),
        identity_(request.mode == Mode::inference || probability_ == 0.0f) {
    // An element's number must not depend on a layout.
    inputs_ = {plain_activation(request.input().shape)};
    output_ = inputs_[0];
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false,
            .backward_reads_output = false,
            .in_place = true,
            .passes_gradient = identity_,
            .alias = identity_};
  }

  Status forward(const ForwardPass& pass) override {
    draw(pass.key != nullptr ? *pass.key : PassKey());
    apply(pass.input(), pass.output);
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    if (pass.input_gradient() != nullptr) apply(pass.output_gradient, pass.input_gradient());
    return {};
  }

private:
  /// Floats that are not worth a thread.
  static constexpr std::size_t kLeast = 1 << 12;

  void draw(const PassKey& key) {
    const auto [word] = dropout_key(key, layer_);
    const Philox stream(Philox::Key{word[0], word[1]});
    const float kept = 1.0f / (1.0f - probability_);
    // Runs begin at multiples of 16, so at a block of four numbers.
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      Philox random = stream;
      random.seek(begin / 4);
      for (std::size_t i = begin; i < end; ++i)
        factors_.data()[i] = random.uniform() < probability_ ? 0.0f : kept;
    });
  }

  void apply(const float* from, float* to) {
    parallel_for(threads_, output_.floats, kLeast, [&](std::size_t begin, std::size_t end) {
      multiply(from + begin, factors_.data() + begin, to + begin, end - begin);
    });
  }

  int threads_;
  std::size_t layer_;
  float probability_;
  bool identity_;
  Scratch factors_;
};

}  // namespace

MadeKernel make_dropout(const KernelRequest& request) {
  return DropoutKernel::make(request);
}

}  // namespace troupe::kernels::cpu
