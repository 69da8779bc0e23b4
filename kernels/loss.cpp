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
