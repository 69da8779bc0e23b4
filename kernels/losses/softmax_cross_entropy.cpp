#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/internal/loss.hpp"
#include "kernels/internal/portable_math.hpp"

namespace troupe::kernels {

namespace {

/// Where the greatest logit is: the first of equals; a NaN, if there is one, wins.
std::size_t greatest(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best] || (std::isnan(logits[i]) && !std::isnan(logits[best]))) best = i;
  return best;
}

/// One sample; the exponentials wait in the gradient's place for their sum.
void add_row(std::span<const float> row, std::size_t label, double smoothing, std::span<float> out,
             LossStats& stats) {
  const std::size_t best = greatest(row);
  // Shifted by the maximum, so that nothing overflows.
  const auto shift = static_cast<double>(row[best]);
  double sum = 0.0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double power = portable_exp(static_cast<double>(row[i]) - shift);
    sum += power;
    if (!out.empty()) out[i] = static_cast<float>(power);
  }
  double target = static_cast<double>(row[label]);
  const double share = smoothing / static_cast<double>(row.size());
  if (smoothing > 0.0) {
    target *= 1.0 - smoothing;
    for (const float logit : row) target += share * static_cast<double>(logit);
  }
  stats.loss_sum += portable_log(sum) + shift - target;
  stats.correct += best == label && !std::isnan(shift) ? 1 : 0;
  ++stats.count;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double probability = static_cast<double>(out[i]) / sum;
    out[i] = static_cast<float>(probability - ((i == label ? 1.0 - smoothing : 0.0) + share));
  }
}

class SoftmaxCrossEntropy final : public LossFunction {
public:
  SoftmaxCrossEntropy(const Model& model, const WorkspaceOptions& options)
      : LossFunction(Loss::softmax_cross_entropy, model,
                     {options.label_smoothing, options.ignored_label, options.threads}),
        model_(model) {}

  Status read(const Tensor& tensor, std::int64_t samples) override {
    const std::int64_t rows = labels_per_sample();
    const std::int64_t classes = outputs_per_label();
    const bool of_tokens = model_.output().rank() == 2;
    const bool fits = tensor.shape() == Shape{samples * rows} ||
                      (of_tokens && tensor.shape() == Shape{samples, rows});
    if (!fits || (tensor.dtype() != DType::u8 && tensor.dtype() != DType::i32))
      return {Code::shape_mismatch,
              fmt::format("{} samples need labels u8 or i32 {}, not {}", samples,
                          to_string(of_tokens ? Shape{samples, rows} : Shape{samples}),
                          describe(tensor))};
    labels_.resize(tensor.elements());
    if (tensor.dtype() == DType::u8) {
      std::ranges::copy(tensor.data<std::uint8_t>(), labels_.begin());
    } else {
      std::ranges::copy(tensor.data<std::int32_t>(), labels_.begin());
    }
    for (std::size_t i = 0; i < labels_.size(); ++i)
      if ((labels_[i] < 0 || labels_[i] >= classes) && labels_[i] != options().ignored_label)
        return {Code::invalid_argument,
                fmt::format("label {} of the batch is {}, but model '{}' has classes 0 to {}", i,
                            labels_[i], model_.name(), classes - 1)};
    return {};
  }

  std::span<const std::byte> labels() const noexcept override {
    return std::as_bytes(std::span(labels_));
  }
  std::size_t bytes_per_sample() const noexcept override {
    return static_cast<std::size_t>(labels_per_sample()) * sizeof(std::int32_t);
  }

  LossStats compute(const std::byte* labels, std::int64_t samples, const float* outputs,
                    float* gradient) const override {
    const auto count = static_cast<std::size_t>(samples * labels_per_sample());
    const std::size_t logits = count * static_cast<std::size_t>(outputs_per_label());
    return softmax_cross_entropy({outputs, logits}, outputs_per_label(),
                                 {reinterpret_cast<const std::int32_t*>(labels), count},
                                 {gradient, gradient == nullptr ? 0 : logits}, options());
  }

private:
  Model model_;
  std::vector<std::int32_t> labels_;
};

}  // namespace

Result<std::unique_ptr<LossFunction>> make_softmax_cross_entropy(const Model& model,
                                                                 const WorkspaceOptions& options) {
  if (model.output().rank() != 1 && model.output().rank() != 2)
    return Error{Code::shape_mismatch,
                 fmt::format("model '{}' gives {}, but its output must be [classes] or [tokens, "
                             "classes]; flatten it",
                             model.name(), to_string(model.output()))};
  return std::unique_ptr<LossFunction>(std::make_unique<SoftmaxCrossEntropy>(model, options));
}

LossStats softmax_cross_entropy(std::span<const float> logits, std::int64_t classes,
                                std::span<const std::int32_t> labels, std::span<float> gradient,
                                const LossOptions& options) {
  if (classes >= kManyClasses)
    return cpu::softmax_cross_entropy(logits, classes, labels, gradient, options);
  const auto width = static_cast<std::size_t>(classes);
  LossStats stats;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const auto out = gradient.empty() ? gradient : gradient.subspan(sample * width, width);
    if (labels[sample] == options.ignored_label) {
      std::ranges::fill(out, 0.0f);
      continue;
    }
    add_row(logits.subspan(sample * width, width), static_cast<std::size_t>(labels[sample]),
            static_cast<double>(options.label_smoothing), out, stats);
  }
  return stats;
}

}  // namespace troupe::kernels
