#include <cmath>

#include <fmt/format.h>

#include "actors/config/internal/key_table.hpp"

namespace troupe::train::internal {
namespace {

/// Whether the optimizer `name` has this key.
struct Use {
  std::string_view key;
  bool (*is_set)(const OptimizerConfig& optimizer);
  bool (*has)(std::string_view name);
  std::string_view who;  ///< those that have it
};

bool has_momentum(std::string_view name) {
  return name == "sgd" || name == "lars";
}
bool has_moments(std::string_view name) {
  return name == "adam" || name == "adamw" || name == "lamb";
}

const Use kUses[] = {
    {"optimizer.momentum", [](const OptimizerConfig& x) { return x.momentum != 0; }, has_momentum,
     "sgd and lars"},
    {"optimizer.nesterov", [](const OptimizerConfig& x) { return x.nesterov; },
     [](std::string_view name) { return name == "sgd"; }, "sgd"},
    {"optimizer.beta1", [](const OptimizerConfig& x) { return x.beta1 != OptimizerConfig{}.beta1; },
     has_moments, "adam, adamw and lamb"},
    {"optimizer.beta2", [](const OptimizerConfig& x) { return x.beta2 != OptimizerConfig{}.beta2; },
     has_moments, "adam, adamw and lamb"},
    {"optimizer.epsilon",
     [](const OptimizerConfig& x) { return x.epsilon != OptimizerConfig{}.epsilon; }, has_moments,
     "adam, adamw and lamb"},
    {"optimizer.trust_coefficient",
     [](const OptimizerConfig& x) {
       return x.trust_coefficient != OptimizerConfig{}.trust_coefficient;
     },
     [](std::string_view name) { return name == "lars"; }, "lars"},
};

std::optional<Problem> check_schedule(const OptimizerConfig& optimizer) {
  const auto& schedule = optimizer.schedule;
  if ((schedule.kind == "cosine" || schedule.kind == "linear") && schedule.final_lr > optimizer.lr)
    return Problem{"optimizer.schedule.final_lr",
                   fmt::format("but must be at most optimizer.lr, which is {}", optimizer.lr)};
  if (schedule.kind == "one_cycle" && schedule.warmup_steps > 0)
    return Problem{"optimizer.schedule.warmup_steps",
                   "but one_cycle warms up by itself; remove the key, or set "
                   "optimizer.schedule.pct_start"};
  return std::nullopt;
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return value >= 1.0 && std::frexp(value, &exponent) == 0.5;
}

}  // namespace

std::optional<Problem> check_optimizer(const OptimizerConfig& optimizer) {
  if (optimizer.loss_scale != 0 && !is_power_of_two(optimizer.loss_scale))
    return Problem{"optimizer.loss_scale",
                   "but must be a power of two (65536, say), so that it changes no digits; or 0"};
  for (const Use& use : kUses)
    if (use.is_set(optimizer) && !use.has(optimizer.name))
      return Problem{use.key, fmt::format("but {} has no such choice; remove the key, which is of "
                                          "{}",
                                          optimizer.name, use.who)};
  if (optimizer.nesterov && optimizer.momentum == 0)
    return Problem{"optimizer.nesterov",
                   "but there is no momentum; set optimizer.momentum, 0.9 for example"};
  return check_schedule(optimizer);
}

}  // namespace troupe::train::internal
