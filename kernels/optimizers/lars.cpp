#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/internal/optimizers.hpp"
#include "kernels/internal/parameter_runs.hpp"
#include "kernels/internal/square_sum.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::optimizers {

namespace {
struct Factors {
  float rate, gradient_scale, momentum, weight_decay;
};
}  // namespace

// The rate is inside the momentum, as in the paper: what an earlier step has gathered keeps the
// rate that it had.
TROUPE_WIDE_LOOP(lars_step, (Factors f, float* w, float* buf, const float* gradient, std::size_t n),
                 (f, w, buf, gradient, n)) {
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i] * f.gradient_scale + f.weight_decay * w[i];
    buf[i] = f.momentum * buf[i] + f.rate * g;
    w[i] -= buf[i];
  }
}

namespace {

class Lars final : public Optimizer {
public:
  Lars(const OptimizerOptions& options, const Model& model)
      : Optimizer(model, options), runs_(parameter_runs(model, options.decay_vectors)) {}

  std::span<const std::string_view> state_names() const noexcept override {
    static constexpr std::array<std::string_view, 1> kNames = {"momentum"};
    return kNames;
  }

private:
  void apply(const UpdateFactors& factors, std::span<const GradientRun> gradient, float* parameters,
             std::span<float* const> state) const override {
    for (const ParameterRun& run : runs_) {
      const double ratio =
          run.decays ? trust_ratio(factors.gradient_scale, gradient, run, parameters) : 1;
      const Factors f{static_cast<float>(factors.learning_rate * ratio), factors.gradient_scale,
                      static_cast<float>(options().momentum),
                      run.decays ? static_cast<float>(options().weight_decay) : 0.0f};
      for_each_piece(gradient, run, [&](std::size_t begin, std::span<const float> g) {
        lars_step(f, parameters + begin, state[0] + begin, g.data(), g.size());
      });
    }
  }

  double trust_ratio(float scale, std::span<const GradientRun> gradient, const ParameterRun& run,
                     const float* parameters) const {
    SquareSum of_weights, of_gradient;
    of_weights.add({parameters + run.begin, parameters + run.end});
    for_each_piece(gradient, run,
                   [&](std::size_t, std::span<const float> g) { of_gradient.add(g); });
    const double weights = std::sqrt(of_weights.total());
    const double step = static_cast<double>(scale) * std::sqrt(of_gradient.total());
    if (!(weights > 0 && step > 0)) return 1;
    return options().trust_coefficient * weights / (step + options().weight_decay * weights);
  }

  const std::vector<ParameterRun> runs_;
};

}  // namespace

std::unique_ptr<Optimizer> lars(const OptimizerOptions& options, const Model& model) {
  return std::make_unique<Lars>(options, model);
}

}  // namespace troupe::kernels::optimizers
