#pragma once

#include <cstddef>
#include <span>

#include "kernels/model.hpp"

namespace troupe::kernels {

/// A run of a flat gradient: its elements from `begin` on.
struct GradientRun {
  std::size_t begin = 0;
  std::span<const float> values;

  std::size_t end() const noexcept { return begin + values.size(); }
};

/// True if the runs follow each other without a gap, and are all of what the optimizer trains.
bool is_whole_gradient(const Model& model, std::span<const GradientRun> gradient) noexcept;

/// The 2-norm over all trained elements. Squares are added in double, along a fixed tree over
/// blocks of fixed size, so any split into runs, and any machine, gives the same bits. `gradient`
/// is whole, or it aborts.
double gradient_norm(const Model& model, std::span<const GradientRun> gradient);

/// What a gradient of that norm is multiplied with, so that its norm is at most `most`: most /
/// (norm + 1e-6), but at most 1, as torch.nn.utils.clip_grad_norm_ (Pascanu, Mikolov, Bengio, "On
/// the difficulty of training recurrent neural networks", 2013, section 3.2).
double clip_factor(double norm, double most) noexcept;

}  // namespace troupe::kernels
