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
      : LossFunction(Loss::mean_squared_error, model, {.threads = options.threads}),
        model_(model) {}

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

  std::span<const std::byte> labels() const noexcept override {
    return std::as_bytes(std::span(targets_));
  }
  std::size_t bytes_per_sample() const noexcept override {
    return static_cast<std::size_t>(model_.output().elements()) * sizeof(float);
  }

  LossStats compute(const std::byte* labels, std::int64_t samples, const float* outputs,
                    float* gradient) const override {
    const auto count = static_cast<std::size_t>(samples * model_.output().elements());
    return cpu::mean_squared_error({outputs, count},
                                   {reinterpret_cast<const float*>(labels), count},
                                   static_cast<std::size_t>(samples * labels_per_sample()),
                                   {gradient, gradient == nullptr ? 0 : count}, options().threads);
  }

private:
  Model model_;
  std::vector<float> targets_;
};

}  // namespace

std::unique_ptr<LossFunction> make_mean_squared_error(const Model& model,
                                                      const WorkspaceOptions& options) {
  return std::make_unique<MeanSquaredError>(model, options);
}

}  // namespace troupe::kernels
