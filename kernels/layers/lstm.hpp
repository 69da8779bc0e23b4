#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/layers/parameter_spec.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Long short-term memory, one layer or several on top of each other: [time, features] to [time,
/// hidden], or to the last step's [hidden]. Hochreiter, Schmidhuber, "Long short-term memory"
/// (1997), with the forget gate of Gers, Schmidhuber, Cummins (2000); as PyTorch's nn.LSTM with
/// batch_first. For each step t, from h = c = 0:
///
///     i = sigmoid(W_ii x_t + b_ii + W_hi h + b_hi)   f, o likewise   g = tanh(... likewise)
///     c = f c + i g                                  h = o tanh(c), which is the output
///
/// All samples have the same number of steps. Parameters of layer k, with the gates in the order i,
/// f, g, o: `NAME.weight_ih_lk` [4 hidden, features, or hidden above the first layer],
/// `NAME.weight_hh_lk` [4 hidden, hidden], `NAME.bias_ih_lk` and `NAME.bias_hh_lk` [4 hidden]; all
/// start uniform within 1 / sqrt(hidden).
struct Lstm {
  std::string name;
  std::int64_t hidden = 1;
  std::int64_t layers = 1;
  bool sequence = true;  ///< gives all steps, else the last one

  std::string describe() const;
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
  Result<std::vector<ParameterSpec>> parameters(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
