#include <array>
#include <cstddef>

#include "kernels/internal/optimizers.hpp"
#include "kernels/internal/parameter_runs.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::optimizers {

namespace {
struct Factors {
  float learning_rate, gradient_scale, momentum, weight_decay;
};
}  // namespace

TROUPE_WIDE_LOOP(plain_step, (Factors f, float* w, const float* gradient, std::size_t n),
                 (f, w, gradient, n)) {
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i] * f.gradient_scale + f.weight_decay * w[i];
    w[i] -= f.learning_rate * g;
  }
}

TROUPE_WIDE_LOOP(momentum_step,
                 (Factors f, float* w, float* buf, const float* gradient, std::size_t n),
                 (f, w, buf, gradient, n)) {
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i] * f.gradient_scale + f.weight_decay * w[i];
    buf[i] = f.momentum * buf[i] + g;
    w[i] -= f.learning_rate * buf[i];
  }
}

TROUPE_WIDE_LOOP(nesterov_step,
                 (Factors f, float* w, float* buf, const float* gradient, std::size_t n),
                 (f, w, buf, gradient, n)) {
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i] * f.gradient_scale + f.weight_decay * w[i];
    buf[i] = f.momentum * buf[i] + g;
    w[i] -= f.learning_rate * (g + f.momentum * buf[i]);
  }
}

namespace {

class Sgd final : public Optimizer {
public:
  Sgd(const OptimizerOptions& options, const Model& model)
      : Optimizer(model, options), runs_(decay_runs(model, options.decay_vectors)) {}

  std::span<const std::string_view> state_names() const noexcept override {
    static constexpr std::array<std::string_view, 1> kNames = {"momentum"};
    return std::span(kNames).first(options().momentum == 0 ? 0 : 1);
  }

private:
  void apply(const UpdateFactors& factors, std::span<const GradientRun> gradient, float* parameters,
             std::span<float* const> state) const override {
    Factors f{static_cast<float>(factors.learning_rate), factors.gradient_scale,
              static_cast<float>(options().momentum), 0};
    for (const ParameterRun& run : runs_) {
      f.weight_decay = run.decays ? static_cast<float>(options().weight_decay) : 0.0f;
      for_each_piece(gradient, run, [&](std::size_t begin, std::span<const float> g) {
        float* const w = parameters + begin;
        if (state.empty()) return plain_step(f, w, g.data(), g.size());
        const auto step = options().nesterov ? nesterov_step : momentum_step;
        step(f, w, state[0] + begin, g.data(), g.size());
      });
    }
  }

  const std::vector<ParameterRun> runs_;
};

}  // namespace

std::unique_ptr<Optimizer> sgd(const OptimizerOptions& options, const Model& model) {
  return std::make_unique<Sgd>(options, model);
}

}  // namespace troupe::kernels::optimizers
