#include "actors/config/learning_rate.hpp"

#include <algorithm>

namespace troupe::train {
namespace {

/// cos(pi * x) for x in [0, 1], as 1 - 2 sin^2(pi x / 2) with the sine's series: sixteen digits.
double cos_pi(double x) {
  constexpr double kHalfPi = 1.57079632679489661923;
  const double angle = kHalfPi * x;
  double term = angle;
  double sine = angle;
  for (int k = 1; k <= 12; ++k) {
    term *= -(angle * angle) / ((2.0 * k) * (2.0 * k + 1.0));
    sine += term;
  }
  return 1.0 - 2.0 * sine * sine;
}

}  // namespace

double learning_rate(const OptimizerConfig& optimizer, std::uint64_t step, JobLength length) {
  const ScheduleConfig& schedule = optimizer.schedule;
  if (step < schedule.warmup_steps)
    return optimizer.lr * static_cast<double>(step + 1) /
           static_cast<double>(schedule.warmup_steps);

  if (schedule.kind == "step") {
    const std::uint64_t epoch = step / std::max<std::uint64_t>(1, length.steps_per_epoch);
    double rate = optimizer.lr;
    for (std::uint64_t n = epoch / std::max<std::uint64_t>(1, schedule.step_epochs); n > 0; --n)
      rate *= schedule.gamma;
    return rate;
  }
  if (schedule.kind == "cosine") {
    const std::uint64_t steps = length.steps_per_epoch * length.epochs;
    if (steps <= schedule.warmup_steps) return optimizer.lr;
    const double done = static_cast<double>(step - schedule.warmup_steps) /
                        static_cast<double>(steps - schedule.warmup_steps);
    return schedule.final_lr +
           (optimizer.lr - schedule.final_lr) * 0.5 * (1.0 + cos_pi(std::min(done, 1.0)));
  }
  return optimizer.lr;
}

}  // namespace troupe::train
