#include "kernels/learning_rate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/internal/portable_math.hpp"

namespace troupe::kernels {

Status LearningRate::validate() const {
  if (!(base > 0.0f && base < 1e9f))
    return {Code::invalid_argument,
            fmt::format("the learning rate is {}, but must be above 0", base)};
  if (schedule == Schedule::step && decay_steps == 0)
    return {Code::invalid_argument, "decay_steps is 0, but must be at least 1"};
  if (schedule == Schedule::step && !(decay > 0.0f && decay <= 1.0f))
    return {Code::invalid_argument,
            fmt::format("decay is {}, but must be above 0 and at most 1", decay)};
  if (schedule == Schedule::cosine && total_steps <= warmup_steps)
    return {Code::invalid_argument,
            fmt::format("total_steps is {}, but must be more than warmup_steps ({})", total_steps,
                        warmup_steps)};
  if (schedule == Schedule::cosine && !(final_fraction >= 0.0f && final_fraction <= 1.0f))
    return {Code::invalid_argument,
            fmt::format("final_fraction is {}, but must be 0 to 1", final_fraction)};
  return {};
}

float LearningRate::at(std::uint64_t step) const noexcept {
  const auto full = static_cast<double>(base);
  if (step < warmup_steps)
    return static_cast<float>(full * static_cast<double>(step + 1) /
                              static_cast<double>(warmup_steps));
  switch (schedule) {
    case Schedule::constant:
      break;
    case Schedule::step: {
      // By squaring, as pow() is not the same on every machine.
      double rate = full;
      double power = static_cast<double>(decay);
      for (std::uint64_t n = step / decay_steps; n > 0; n /= 2, power *= power)
        if (n % 2 == 1) rate *= power;
      return static_cast<float>(rate);
    }
    case Schedule::cosine: {
      const std::uint64_t decaying = total_steps - warmup_steps;
      const std::uint64_t done = std::min(step - warmup_steps, decaying);
      const double half_turns = static_cast<double>(done) / static_cast<double>(decaying);
      const double fraction = 0.5 * (1.0 + portable_cos_turns(half_turns / 2));
      const auto end = static_cast<double>(final_fraction);
      return static_cast<float>(full * (end + (1.0 - end) * fraction));
    }
  }
  return base;
}

Result<LearningRate::Schedule> parse_schedule(std::string_view name) {
  using Schedule = LearningRate::Schedule;
  for (Schedule schedule : {Schedule::constant, Schedule::step, Schedule::cosine})
    if (name == to_string(schedule)) return schedule;
  return Error{Code::invalid_argument,
               fmt::format("there is no learning rate schedule '{}'; use one of: constant, step, "
                           "cosine",
                           name)};
}

std::string_view to_string(LearningRate::Schedule schedule) noexcept {
  switch (schedule) {
    case LearningRate::Schedule::constant:
      return "constant";
    case LearningRate::Schedule::step:
      return "step";
    case LearningRate::Schedule::cosine:
      return "cosine";
  }
  return "unknown";
}

}  // namespace troupe::kernels
