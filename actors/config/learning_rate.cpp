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

/// From `begin` to `end` along half a cosine, for `done` in [0, 1].
double along_cosine(double begin, double end, double done) {
  return end + (begin - end) * 0.5 * (1.0 + cos_pi(done));
}

double one_cycle(const OptimizerConfig& optimizer, double step, double steps) {
  const ScheduleConfig& schedule = optimizer.schedule;
  const double first = optimizer.lr / schedule.div_factor;
  const double peak = schedule.pct_start * steps - 1;
  if (step <= peak && peak > 0) return along_cosine(first, optimizer.lr, step / peak);
  // With less than a step to grow in, the peak is the first step or would lie before it.
  const double begin = std::max(peak, 0.0);
  const double left = steps - 1 - begin;
  if (left <= 0) return optimizer.lr;
  return along_cosine(optimizer.lr, first / schedule.final_div_factor,
                      std::min((step - begin) / left, 1.0));
}

}  // namespace

double learning_rate(const OptimizerConfig& optimizer, std::uint64_t step, JobLength length) {
  const ScheduleConfig& schedule = optimizer.schedule;
  const std::uint64_t steps = length.steps_per_epoch * length.epochs;
  if (schedule.kind == "one_cycle")
    return one_cycle(optimizer, static_cast<double>(step), static_cast<double>(steps));
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
  if (schedule.kind == "constant" || steps <= schedule.warmup_steps) return optimizer.lr;
  const double done = std::min(static_cast<double>(step - schedule.warmup_steps) /
                                   static_cast<double>(steps - schedule.warmup_steps),
                               1.0);
  if (schedule.kind == "linear") return optimizer.lr + (schedule.final_lr - optimizer.lr) * done;
  return along_cosine(optimizer.lr, schedule.final_lr, done);
}

}  // namespace troupe::train
