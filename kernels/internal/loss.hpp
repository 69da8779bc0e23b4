#pragma once

#include <cstddef>
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

struct LossOptions {
  /// What each label gives away, in equal parts to all classes: 0 to below 1.
  float label_smoothing = 0.0f;
  std::optional<std::int32_t> ignored_label = {};
  int threads = 1;  ///< not part of the result
};

/// A Loss made ready for a model: reads the labels of a call, and compares with them what the model
/// gives.
///
/// Ownership: keeps a copy of the labels.
/// Threads:   one at a time, any.
class LossFunction {
public:
  virtual ~LossFunction() = default;
  LossFunction(const LossFunction&) = delete;
  LossFunction& operator=(const LossFunction&) = delete;

  /// Checks and keeps the labels of `samples` samples. Errors: `shape_mismatch` for another shape
  /// or type, `invalid_argument` for a label outside the classes.
  virtual Status read(const Tensor& labels, std::int64_t samples) = 0;
  /// Those that were read: i32 or f32, as the Loss says, of one sample after the other.
  virtual std::span<const std::byte> labels() const noexcept = 0;
  /// Bytes of them that one sample has.
  virtual std::size_t bytes_per_sample() const noexcept = 0;

  /// The sums over `samples` samples whose labels (as `labels` has them) are at `labels`, and
  /// (unless `gradient` is null) the gradient of the summed loss by each output. The same bits on
  /// every machine and by any number of threads.
  virtual LossStats compute(const std::byte* labels, std::int64_t samples, const float* outputs,
                            float* gradient) const = 0;

  /// And with the gradient multiplied by `scale`.
  LossStats compute_scaled(const std::byte* labels, std::int64_t samples, const float* outputs,
                           float* gradient, float scale) const;

  // What another device's kernel needs to know.
  Loss kind() const noexcept { return kind_; }
  std::int64_t labels_per_sample() const noexcept { return rows_; }
  std::int64_t outputs_per_label() const noexcept { return width_; }
  const LossOptions& options() const noexcept { return options_; }

protected:
  LossFunction(Loss kind, const Model& model, LossOptions options)
      : kind_(kind),
        options_(options),
        rows_(model.labels_per_sample()),
        width_(model.output().elements() / rows_) {}

private:
  const Loss kind_;
  const LossOptions options_;
  const std::int64_t rows_, width_;
};

/// The one of `options`. Errors: `shape_mismatch` if the loss has no use for such an output.
Result<std::unique_ptr<LossFunction>> make_loss(const Model& model,
                                                const WorkspaceOptions& options);
Result<std::unique_ptr<LossFunction>> make_softmax_cross_entropy(const Model& model,
                                                                 const WorkspaceOptions& options);
std::unique_ptr<LossFunction> make_mean_squared_error(const Model& model,
                                                      const WorkspaceOptions& options);

/// From so many classes on the exponentials are taken in float: a sum of them is within 1e-6 of the
/// one in double, relatively.
inline constexpr std::int64_t kManyClasses = 128;

/// Softmax cross entropy of row-major `logits` [labels.size(), classes], as LossFunction::compute.
/// The labels must be in range or the ignored one, whose samples count for nothing.
LossStats softmax_cross_entropy(std::span<const float> logits, std::int64_t classes,
                                std::span<const std::int32_t> labels, std::span<float> gradient,
                                const LossOptions& options = {});

}  // namespace troupe::kernels
