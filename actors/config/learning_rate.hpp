#pragma once

#include <cstdint>

#include "actors/config/job_config.hpp"

namespace troupe::train {

/// How long a job runs, in steps.
struct JobLength {
  std::uint64_t steps_per_epoch = 1;
  std::uint64_t epochs = 1;
};

/// The learning rate of step `step` (from 0 over the whole job). A pure function in plain double
/// arithmetic, without the math library's cosine: that may differ in its last bit between machines.
///
/// Warm-up: lr * (step + 1) / warmup_steps while step < warmup_steps. After it
/// "step" is lr * gamma^floor(epoch / step_epochs), "linear" goes from lr to final_lr by the same
/// amount at each of the steps that are left, and "cosine" along half a period (Loshchilov and
/// Hutter, SGDR, 2017, eq. 5).
///
/// "one_cycle" has no warm-up but its own: from lr / div_factor to lr until step pct_start * steps
/// - 1, then down to lr / div_factor / final_div_factor at the last step, each along half a cosine,
/// as torch.optim.lr_scheduler.OneCycleLR of two phases (Smith and Topin, "Super-convergence",
/// 2017); momentum and betas stay.
double learning_rate(const OptimizerConfig& optimizer, std::uint64_t step, JobLength length);

}  // namespace troupe::train
