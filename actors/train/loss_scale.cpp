#include "actors/train/loss_scale.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

namespace troupe::train {

namespace {
// The largest power of two that an f32 has.
constexpr double kMost = 0x1p127;
}  // namespace

void LossScale::add_finite(const OptimizerConfig& config) {
  if (config.loss_scale == 0 || ++steps_ < config.loss_scale_steps) return;
  value_ = std::min(2.0 * value_, kMost);
  steps_ = 0;
}

void LossScale::add_overflow() {
  value_ = std::max(0.5 * value_, 1.0);
  steps_ = 0;
}

std::string LossScale::to_text() const {
  return fmt::format("{} {}", value_, steps_);
}

Result<LossScale> LossScale::from_text(const std::string& text) {
  std::istringstream stream(text);
  LossScale scale;
  int exponent = 0;
  if (!(stream >> scale.value_ >> scale.steps_) || !stream.eof() ||
      !(scale.value_ >= 1.0 && scale.value_ <= kMost) || std::frexp(scale.value_, &exponent) != 0.5)
    return Error{Code::corrupt_data,
                 fmt::format("its loss scale is '{}', but must be a power of two and a number of "
                             "steps; resume from another one",
                             text)};
  return scale;
}

}  // namespace troupe::train
