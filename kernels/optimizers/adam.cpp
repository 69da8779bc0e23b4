// Adam and AdamW, which differ in where the weights decay.
#include <cmath>
#include <cstddef>

#include "kernels/internal/moments.hpp"
#include "kernels/internal/optimizers.hpp"
#include "kernels/internal/parameter_runs.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::optimizers {

namespace {
struct Factors {
  MomentFactors moments;
  float gradient_decay = 0;  ///< adam: times w, to the gradient
  float keep = 1;            ///< adamw: of w; 1 without decay
  float rate;                ///< with the mean's correction
  float root_correction, epsilon;
};
}  // namespace

TROUPE_WIDE_LOOP(adam_step,
                 (const Factors& factors, float* w, float* m, float* v, const float* gradient,
                  std::size_t n),
                 (factors, w, m, v, gradient, n)) {
  const Factors f = factors;
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i] * f.moments.gradient_scale + f.gradient_decay * w[i];
    f.moments.move(g, m[i], v[i]);
    const float root = std::sqrt(v[i]) * f.root_correction + f.epsilon;
    w[i] = f.keep * w[i] - f.rate * (m[i] / root);
  }
}

namespace {

class Adam final : public Optimizer {
public:
  Adam(const OptimizerOptions& options, const Model& model, bool decoupled)
      : Optimizer(model, options),
        decoupled_(decoupled),
        runs_(decay_runs(model, options.decay_vectors)) {}

  std::span<const std::string_view> state_names() const noexcept override { return kMomentNames; }

private:
  void apply(const UpdateFactors& factors, std::span<const GradientRun> gradient, float* parameters,
             std::span<float* const> state) const override {
    const BiasCorrection correction(options(), factors.update);
    Factors f{.moments = {options(), factors.gradient_scale},
              .rate = static_cast<float>(factors.learning_rate * correction.mean),
              .root_correction = static_cast<float>(correction.root),
              .epsilon = static_cast<float>(options().epsilon)};
    for (const ParameterRun& run : runs_) {
      const double decay = run.decays ? options().weight_decay : 0;
      f.gradient_decay = static_cast<float>(decoupled_ ? 0 : decay);
      f.keep = static_cast<float>(decoupled_ ? 1 - factors.learning_rate * decay : 1);
      for_each_piece(gradient, run, [&](std::size_t begin, std::span<const float> g) {
        adam_step(f, parameters + begin, state[0] + begin, state[1] + begin, g.data(), g.size());
      });
    }
  }

  const bool decoupled_;
  const std::vector<ParameterRun> runs_;
};

}  // namespace

std::unique_ptr<Optimizer> adam(const OptimizerOptions& options, const Model& model) {
  return std::make_unique<Adam>(options, model, false);
}

std::unique_ptr<Optimizer> adamw(const OptimizerOptions& options, const Model& model) {
  return std::make_unique<Adam>(options, model, true);
}

}  // namespace troupe::kernels::optimizers
