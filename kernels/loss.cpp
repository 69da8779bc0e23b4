#include "kernels/loss.hpp"

#include "kernels/internal/loss.hpp"

namespace troupe::kernels {

std::string_view to_string(Loss loss) noexcept {
  switch (loss) {
    case Loss::softmax_cross_entropy:
      return "softmax_cross_entropy";
    case Loss::mean_squared_error:
      return "mean_squared_error";
  }
  return "unknown";
}

LossStats LossFunction::compute_scaled(const std::byte* labels, std::int64_t samples,
                                       const float* outputs, float* gradient, float scale) const {
  const LossStats stats = compute(labels, samples, outputs, gradient);
  if (gradient == nullptr || scale == 1.0f) return stats;
  const std::int64_t count = samples * rows_ * width_;
  for (std::int64_t i = 0; i < count; ++i) gradient[i] *= scale;
  return stats;
}

Result<std::unique_ptr<LossFunction>> make_loss(const Model& model,
                                                const WorkspaceOptions& options) {
  switch (options.loss) {
    case Loss::softmax_cross_entropy:
      return make_softmax_cross_entropy(model, options);
    case Loss::mean_squared_error:
      return make_mean_squared_error(model, options);
  }
  return Error{Code::invalid_argument, "loss is none of those there are"};
}

}  // namespace troupe::kernels
