#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/internal/moments.hpp"
#include "kernels/internal/optimizers.hpp"
#include "kernels/internal/parameter_runs.hpp"
#include "kernels/internal/square_sum.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::optimizers {

namespace {
struct Factors {
  MomentFactors moments;
  float mean_correction, root_correction, epsilon;
  float weight_decay = 0;
};
}  // namespace

TROUPE_WIDE_LOOP(move_moments,
                 (const Factors& factors, float* m, float* v, const float* gradient, std::size_t n),
                 (factors, m, v, gradient, n)) {
  const Factors f = factors;
  for (std::size_t i = 0; i < n; ++i)
    f.moments.move(gradient[i] * f.moments.gradient_scale, m[i], v[i]);
}

TROUPE_WIDE_LOOP(direction,
                 (const Factors& factors, float* u, const float* w, const float* m, const float* v,
                  std::size_t n),
                 (factors, u, w, m, v, n)) {
  const Factors f = factors;
  for (std::size_t i = 0; i < n; ++i) {
    const float root = std::sqrt(v[i]) * f.root_correction + f.epsilon;
    u[i] = m[i] * f.mean_correction / root + f.weight_decay * w[i];
  }
}

TROUPE_WIDE_LOOP(go_along, (float rate, float* w, const float* u, std::size_t n), (rate, w, u, n)) {
  for (std::size_t i = 0; i < n; ++i) w[i] -= rate * u[i];
}

namespace {

/// The direction is computed twice, for its norm and for the step, in cache each time: a third
/// buffer to keep it in would cost more.
constexpr std::size_t kChunk = 1024;

class Lamb final : public Optimizer {
public:
  Lamb(const OptimizerOptions& options, const Model& model)
      : Optimizer(model, options), runs_(parameter_runs(model, options.decay_vectors)) {}

  std::span<const std::string_view> state_names() const noexcept override { return kMomentNames; }

private:
  void apply(const UpdateFactors& factors, std::span<const GradientRun> gradient, float* parameters,
             std::span<float* const> state) const override {
    const BiasCorrection correction(options(), factors.update);
    Factors f{.moments = {options(), factors.gradient_scale},
              .mean_correction = static_cast<float>(correction.mean),
              .root_correction = static_cast<float>(correction.root),
              .epsilon = static_cast<float>(options().epsilon)};
    for (const ParameterRun& run : runs_) {
      f.weight_decay = run.decays ? static_cast<float>(options().weight_decay) : 0.0f;
      for_each_piece(gradient, run, [&](std::size_t begin, std::span<const float> g) {
        move_moments(f, state[0] + begin, state[1] + begin, g.data(), g.size());
      });
      const double ratio = run.decays ? trust_ratio(f, run, parameters, state) : 1;
      const auto rate = static_cast<float>(factors.learning_rate * ratio);
      for_each_direction(f, run, parameters, state,
                         [&](std::size_t begin, std::span<const float> u) {
                           go_along(rate, parameters + begin, u.data(), u.size());
                         });
    }
  }

  /// Calls use(begin, direction) along the run.
  template <class Use>
  static void for_each_direction(const Factors& f, const ParameterRun& run, const float* parameters,
                                 std::span<float* const> state, Use use) {
    std::array<float, kChunk> chunk;
    for (std::size_t begin = run.begin; begin < run.end; begin += kChunk) {
      const auto u = std::span(chunk).first(std::min(kChunk, run.end - begin));
      direction(f, u.data(), parameters + begin, state[0] + begin, state[1] + begin, u.size());
      use(begin, u);
    }
  }

  static double trust_ratio(const Factors& f, const ParameterRun& run, const float* parameters,
                            std::span<float* const> state) {
    SquareSum of_weights, of_direction;
    of_weights.add({parameters + run.begin, parameters + run.end});
    for_each_direction(f, run, parameters, state,
                       [&](std::size_t, std::span<const float> u) { of_direction.add(u); });
    const double weights = std::sqrt(of_weights.total());
    const double step = std::sqrt(of_direction.total());
    return weights > 0 && step > 0 ? weights / step : 1;
  }

  const std::vector<ParameterRun> runs_;
};

}  // namespace

std::unique_ptr<Optimizer> lamb(const OptimizerOptions& options, const Model& model) {
  return std::make_unique<Lamb>(options, model);
}

}  // namespace troupe::kernels::optimizers
