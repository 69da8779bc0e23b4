#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::kernels {

/// What training makes smaller. A loss is a number for each label: for each sample, or for each
/// token where the output is [tokens, ...]. Passes give sums over labels, and gradients of those
/// sums; divided by LossStats::count both are what PyTorch's loss of the same name, with its
/// default of a mean, gives for the whole batch.
enum class Loss : std::uint8_t {
  /// Of logits y and a class c: log(sum over i of e^y_i) - y_c. PyTorch's CrossEntropyLoss.
  /// Labels: u8 or i32 [batch], or [batch, tokens] or that in one, each 0..classes-1.
  softmax_cross_entropy,
  /// Of outputs y and targets t of n elements: (sum over i of (y_i - t_i)^2) / n, whose gradient is
  /// 2 (y_i - t_i) / n. PyTorch's MSELoss, whose mean is over all elements of the batch.
  /// Labels: f32 [batch] + the model's output, whatever its shape.
  mean_squared_error,
};
/// "softmax_cross_entropy", "mean_squared_error".
std::string_view to_string(Loss loss) noexcept;

/// What a pass over some samples gave. Sums, so that ranks add theirs up.
struct LossStats {
  double loss_sum = 0.0;     ///< of the labels' losses, added in their order
  std::int64_t correct = 0;  ///< labels that have the greatest logit; 0 without classes
  std::int64_t count = 0;    ///< labels, without those ignored

  LossStats& operator+=(const LossStats& other) noexcept {
    loss_sum += other.loss_sum;
    correct += other.correct;
    count += other.count;
    return *this;
  }
};

}  // namespace troupe::kernels
