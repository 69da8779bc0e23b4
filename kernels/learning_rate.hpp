#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// A learning rate for each step, as a pure function of the step, so that nothing about it is saved
/// or sent. Threads: a value type.
struct LearningRate {
  enum class Schedule : std::uint8_t {
    constant,
    step,    ///< times `decay` after every `decay_steps` steps
    cosine,  ///< along half a cosine from `base` to `base * final_fraction` at `total_steps`
  };

  Schedule schedule = Schedule::constant;
  float base = 0.01f;
  std::uint64_t warmup_steps = 0;  ///< rises linearly to `base` over the first so many steps
  std::uint64_t decay_steps = 1;   ///< step: how often
  float decay = 0.1f;              ///< step: by what
  std::uint64_t total_steps = 1;   ///< cosine: steps of the job, warm-up included
  float final_fraction = 0.0f;     ///< cosine: where it ends, as a part of `base`

  /// Errors: `invalid_argument` naming the field.
  Status validate() const;

  /// Of step `step`, the first being 0. The same on every machine.
  float at(std::uint64_t step) const noexcept;
};

/// "constant", "step", "cosine". Errors: `invalid_argument` with the names that are there.
Result<LearningRate::Schedule> parse_schedule(std::string_view name);
std::string_view to_string(LearningRate::Schedule schedule) noexcept;

}  // namespace troupe::kernels
