#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "kernels/loss.hpp"
#include "kernels/model.hpp"
#include "kernels/tensor.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// A Loss made ready for a model: reads the labels of a call, and compares with them what the model
/// gives.
///
/// Ownership: keeps a copy of the labels.
/// Threads:   one at a time, any.
class LossFunction {
public:
  virtual ~LossFunction() = default;
  /// Checks and keeps the labels of `samples` samples. Errors: `shape_mismatch` for another shape
  /// or type, `invalid_argument` for a label outside the classes.
  virtual Status read(const Tensor& labels, std::int64_t samples) = 0;
  /// The sums over samples [first, first + samples) of those read, whose outputs are `outputs`, and
  /// (unless `gradient` is empty) the gradient of the summed loss by each output. The same bits on
  /// every machine and by any number of threads.
  virtual LossStats compute(std::int64_t first, std::int64_t samples,
                            std::span<const float> outputs, std::span<float> gradient) = 0;
};

/// The one of `options`. Errors: `shape_mismatch` if the loss has no use for such an output.
Result<std::unique_ptr<LossFunction>> make_loss(const Model& model,
                                                const WorkspaceOptions& options);
Result<std::unique_ptr<LossFunction>> make_softmax_cross_entropy(const Model& model,
                                                                 const WorkspaceOptions& options);
std::unique_ptr<LossFunction> make_mean_squared_error(const Model& model,
                                                      const WorkspaceOptions& options);

struct LossOptions {
  /// What each label gives away, in equal parts to all classes: 0 to below 1.
  float label_smoothing = 0.0f;
  std::optional<std::int32_t> ignored_label = {};
  int threads = 1;  ///< not part of the result
};

/// From so many classes on the exponentials are taken in float: a sum of them is within 1e-6 of the
/// one in double, relatively.
inline constexpr std::int64_t kManyClasses = 128;

/// Softmax cross entropy of row-major `logits` [labels.size(), classes], as LossFunction::compute.
/// The labels must be in range or the ignored one, whose samples count for nothing.
LossStats softmax_cross_entropy(std::span<const float> logits, std::int64_t classes,
                                std::span<const std::int32_t> labels, std::span<float> gradient,
                                const LossOptions& options = {});

}  // namespace troupe::kernels
