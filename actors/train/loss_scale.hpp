#pragma once

#include <cstdint>
#include <string>

#include "actors/config/job_config.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// What the loss's gradient is multiplied by before backward, so that small gradients of a narrow
/// type do not vanish; the optimizer divides by it again. Dynamic: it is halved, and the step left
/// out, where a gradient is not finite, and doubled after so many steps in a row where all are.
/// Micikevicius et al., "Mixed precision training" (2017), section 3.2. A power of two, so that in
/// f32 it changes no bit.
///
/// All nodes see the same sums, so theirs are the same at each step.
/// Threads: a value type.
class LossScale {
public:
  /// Off: 1, always.
  LossScale() = default;
  explicit LossScale(const OptimizerConfig& config)
      : value_(config.loss_scale == 0 ? 1.0 : config.loss_scale) {}

  float value() const noexcept { return static_cast<float>(value_); }
  /// Whether a gradient that is not finite may be the scale's fault.
  bool can_shrink() const noexcept { return value_ > 1.0; }

  /// The step's gradient was finite, or not.
  void add_finite(const OptimizerConfig& config);
  void add_overflow();

  /// "65536 12": value and steps since it last changed, for a checkpoint.
  std::string to_text() const;
  /// Error: `corrupt_data`.
  static Result<LossScale> from_text(const std::string& text);

  bool operator==(const LossScale&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, LossScale& x) {
    return f(x.value_, x.steps_);
  }

private:
  double value_ = 1.0;
  std::uint64_t steps_ = 0;  ///< that were finite, since it last changed
};

}  // namespace troupe::train
