#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/internal/loss.hpp"

namespace troupe::kernels {
namespace {

class MeanSquaredError final : public LossFunction {
public:
  MeanSquaredError(const Model& model, const WorkspaceOptions& options)
      : model_(model), threads_(options.threads) {}

  Status read(const Tensor& labels, std::int64_t samples) override {
    const Shape& output = model_.output();
    const Shape& given = labels.shape();
    if (labels.dtype() != DType::f32 || given.rank() != output.rank() + 1 || given[0] != samples ||
        given.without_first() != output)
      return {Code::shape_mismatch,
              fmt::format("{} samples need targets f32 [{}] + {}, the output of model '{}', not {}",
                          samples, samples, to_string(output), model_.name(), describe(labels))};
    const auto values = labels.data<float>();
    targets_.assign(values.begin(), values.end());
    return {};
  }

  LossStats compute(std::int64_t first, std::int64_t samples, std::span<const float> outputs,
                    std::span<float> gradient) override {
    const auto sample = static_cast<std::size_t>(model_.output().elements());
    const auto labels = static_cast<std::size_t>(model_.labels_per_sample());
    const std::span<const float> targets = targets_;
    return cpu::mean_squared_error(
        outputs, targets.subspan(static_cast<std::size_t>(first) * sample, outputs.size()),
        static_cast<std::size_t>(samples) * labels, gradient, threads_);
  }

private:
  Model model_;
  int threads_;
  std::vector<float> targets_;
};

}  // namespace

std::unique_ptr<LossFunction> make_mean_squared_error(const Model& model,
                                                      const WorkspaceOptions& options) {
  return std::make_unique<MeanSquaredError>(model, options);
}

}  // namespace troupe::kernels
