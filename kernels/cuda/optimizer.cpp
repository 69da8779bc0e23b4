#include "kernels/cuda/internal/optimizer.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "kernels/cuda/internal/device_scope.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/optimizer_bodies.hpp"
#include "kernels/internal/moments.hpp"
#include "kernels/internal/parameter_runs.hpp"

namespace troupe::kernels::cuda {

namespace {

/// What an update works on.
struct Update {
  CudaStream& stream;
  const OptimizerOptions& options;
  const UpdateFactors& factors;
  const float* gradient;
  float* parameters;
  std::span<float* const> state;

  double decay_of(const ParameterRun& run) const { return run.decays ? options.weight_decay : 0; }
  template <class Body>
  Status enqueue(const ParameterRun& run, const Body& body) const {
    return for_each(stream.handle(), run.end - run.begin, body);
  }
};

Status sgd(const Update& u, const ParameterRun& run) {
  return u.enqueue(
      run, SgdStep{static_cast<float>(u.factors.learning_rate), u.factors.gradient_scale,
                   static_cast<float>(u.options.momentum), static_cast<float>(u.decay_of(run)),
                   u.options.nesterov, u.gradient + run.begin, u.parameters + run.begin,
                   u.options.momentum == 0 ? nullptr : u.state[0] + run.begin});
}

MomentStep moments(const Update& u) {
  const MomentFactors f(u.options, u.factors.gradient_scale);
  return {f.gradient_scale, f.fresh_mean, f.beta2, f.fresh_square};
}

Status adam(const Update& u, const ParameterRun& run, bool decoupled) {
  const BiasCorrection correction(u.options, u.factors.update);
  const double decay = u.decay_of(run);
  return u.enqueue(
      run, AdamStep{moments(u), static_cast<float>(decoupled ? 0 : decay),
                    static_cast<float>(decoupled ? 1 - u.factors.learning_rate * decay : 1),
                    static_cast<float>(u.factors.learning_rate * correction.mean),
                    static_cast<float>(correction.root), static_cast<float>(u.options.epsilon),
                    u.gradient + run.begin, u.parameters + run.begin, u.state[0] + run.begin,
                    u.state[1] + run.begin});
}

/// Enqueues the rate of a parameter, and gives where it will be. `step` gives the elements of where
/// it goes.
template <class Step>
Result<const float*> trust_rate(const Update& u, const ParameterRun& run, bool lars,
                                const Step& step) {
  const std::size_t n = run.end - run.begin;
  const std::size_t blocks =
      (n + SquareBlocks<Element>::kBlock - 1) / SquareBlocks<Element>::kBlock;
  TROUPE_ASSIGN(std::byte* const scratch, u.stream.scratch((2 * blocks + 1) * sizeof(double)));
  auto* const of_weights = reinterpret_cast<double*>(scratch);
  double* const of_step = of_weights + blocks;
  auto* const rate = reinterpret_cast<float*>(of_step + blocks);
  const cudaStream_t stream = u.stream.handle();
  if (!run.decays) {
    TROUPE_TRY(for_each(stream, 1, PlainRate{static_cast<float>(u.factors.learning_rate), rate}));
    return rate;
  }
  TROUPE_TRY(
      for_each(stream, blocks, SquareBlocks<Element>{{u.parameters + run.begin}, n, of_weights}));
  TROUPE_TRY(for_each(stream, blocks, SquareBlocks<Step>{step, n, of_step}));
  TROUPE_TRY(for_each(stream, 1,
                      TrustRate{lars, of_weights, of_step, n, u.factors.learning_rate,
                                static_cast<double>(u.factors.gradient_scale),
                                u.options.trust_coefficient, u.options.weight_decay, rate}));
  return rate;
}

Status lamb(const Update& u, const ParameterRun& run) {
  const BiasCorrection correction(u.options, u.factors.update);
  float *const m = u.state[0] + run.begin, *const v = u.state[1] + run.begin;
  TROUPE_TRY(u.enqueue(run, LambMoments{moments(u), u.gradient + run.begin, m, v}));
  const LambDirection direction{static_cast<float>(correction.mean),
                                static_cast<float>(correction.root),
                                static_cast<float>(u.options.epsilon),
                                static_cast<float>(u.decay_of(run)),
                                u.parameters + run.begin,
                                m,
                                v};
  TROUPE_ASSIGN(const float* const rate, trust_rate(u, run, /*lars=*/false, direction));
  return u.enqueue(run, LambStep{direction, rate, u.parameters + run.begin});
}

Status lars(const Update& u, const ParameterRun& run) {
  TROUPE_ASSIGN(const float* const rate,
                trust_rate(u, run, /*lars=*/true, Element{u.gradient + run.begin}));
  return u.enqueue(run, LarsStep{u.factors.gradient_scale, static_cast<float>(u.options.momentum),
                                 static_cast<float>(u.decay_of(run)), rate, u.gradient + run.begin,
                                 u.parameters + run.begin, u.state[0] + run.begin});
}

}  // namespace

Status update(CudaStream& stream, const OptimizerOptions& options, const Model& model,
              const UpdateFactors& factors, const float* gradient, float* parameters,
              std::span<float* const> state) {
  const DeviceScope scope(stream.ordinal());
  TROUPE_TRY(scope.status());
  const Update u{stream, options, factors, gradient, parameters, state};
  const auto each = [](const std::vector<ParameterRun>& runs, const auto& step) -> Status {
    for (const ParameterRun& run : runs) TROUPE_TRY(step(run));
    return {};
  };
  const auto runs = [&] { return decay_runs(model, options.decay_vectors); };
  const auto by_parameter = [&] { return parameter_runs(model, options.decay_vectors); };
  if (options.name == "sgd") return each(runs(), [&](const auto& run) { return sgd(u, run); });
  if (options.name == "adam" || options.name == "adamw")
    return each(runs(), [&](const auto& run) { return adam(u, run, options.name == "adamw"); });
  if (options.name == "lamb")
    return each(by_parameter(), [&](const auto& run) { return lamb(u, run); });
  if (options.name == "lars")
    return each(by_parameter(), [&](const auto& run) { return lars(u, run); });
  return {Code::not_found, fmt::format("there is no optimizer '{}' on CUDA", options.name)};
}

Status update_statistics(CudaStream& stream, const Model& model, const float* sums, std::size_t n,
                         float scale, float* parameters) {
  const DeviceScope scope(stream.ordinal());
  TROUPE_TRY(scope.status());
  for (const StatisticRun& run : statistic_runs(model)) {
    if (run.begin >= n) break;
    TROUPE_TRY(
        for_each(stream.handle(), std::min(run.end, n) - run.begin,
                 StatisticStep{run.momentum, scale, sums + run.begin, parameters + run.begin}));
  }
  return {};
}

}  // namespace troupe::kernels::cuda
