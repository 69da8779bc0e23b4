#include "kernels/sgd.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels {

namespace {
struct Factors {
  float learning_rate, gradient_scale, momentum, weight_decay;
};
}  // namespace

TROUPE_WIDE_LOOP(plain_step,
                 (Factors f, float* w, float* buf, const float* gradients, std::size_t n),
                 (f, w, buf, gradients, n)) {
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradients[i] * f.gradient_scale + f.weight_decay * w[i];
    buf[i] = f.momentum * buf[i] + g;
    w[i] -= f.learning_rate * buf[i];
  }
}

TROUPE_WIDE_LOOP(nesterov_step,
                 (Factors f, float* w, float* buf, const float* gradients, std::size_t n),
                 (f, w, buf, gradients, n)) {
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradients[i] * f.gradient_scale + f.weight_decay * w[i];
    buf[i] = f.momentum * buf[i] + g;
    w[i] -= f.learning_rate * (g + f.momentum * buf[i]);
  }
}

Status SgdOptions::validate() const {
  if (!(momentum >= 0.0f && momentum < 1.0f))
    return {Code::invalid_argument,
            fmt::format("momentum is {}, but must be at least 0 and below 1", momentum)};
  if (!(weight_decay >= 0.0f && weight_decay < 1e9f))
    return {Code::invalid_argument,
            fmt::format("weight_decay is {}, but must be 0 or more", weight_decay)};
  if (nesterov && momentum == 0.0f)
    return {Code::invalid_argument, "nesterov is on, but momentum is 0; set a momentum"};
  return {};
}

void sgd_step(const SgdOptions& options, float learning_rate, float gradient_scale,
              std::span<float> parameters, std::span<float> momentum,
              std::span<const float> gradients) {
  TROUPE_CHECK(parameters.size() == momentum.size() && parameters.size() == gradients.size(),
               fmt::format("sgd_step of {} parameters, {} momenta, {} gradients", parameters.size(),
                           momentum.size(), gradients.size()));
  const Factors factors{learning_rate, gradient_scale, options.momentum, options.weight_decay};
  const auto step = options.nesterov ? nesterov_step : plain_step;
  step(factors, parameters.data(), momentum.data(), gradients.data(), parameters.size());
}

}  // namespace troupe::kernels
