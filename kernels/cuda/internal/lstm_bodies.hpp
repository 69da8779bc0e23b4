#pragma once

#include <cstddef>

#include "kernels/host_device.hpp"
#include "kernels/internal/wide_math.hpp"

// One step of one LSTM layer, in the CPU's operations (kernels/cpu/lstm_step.cpp) and their order.
namespace troupe::kernels::cuda {

/// [a, b, width] to [b, a, width].
struct SwapAxes {
  const float* from;
  float* to;
  std::size_t a, b, width;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t inner = i % width, second = i / width % b, first = i / width / b;
    to[(second * a + first) * width + inner] = from[i];
  }
};

/// What comes into the gates [rows, 4 hidden] before any product: the sum of both biases.
struct LstmBiases {
  const float* input_bias;
  const float* hidden_bias;
  std::size_t width;  ///< 4 hidden
  float* gates;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    gates[i] = input_bias[i % width] + hidden_bias[i % width];
  }
};

/// Makes gates i, f, g, o of what comes into them, and gives cells and hidden state, for element i
/// of [batch, hidden].
struct LstmCellForward {
  std::size_t width;    ///< hidden
  float* gates;         ///< [batch, 4 hidden]
  const float* before;  ///< the cells of the step before; null: zeros
  float* cells;
  float* hidden;
  TROUPE_HOST_DEVICE void operator()(std::size_t at) const {
    float* const i = gates + at / width * 4 * width + at % width;
    float *const f = i + width, *const g = f + width, *const o = g + width;
    *i = wide::sigmoid(*i);
    *f = wide::sigmoid(*f);
    *g = wide::tanh(*g);
    *o = wide::sigmoid(*o);
    const float cell = before == nullptr ? *i * *g : *f * before[at] + *i * *g;
    cells[at] = cell;
    hidden[at] = *o * wide::tanh(cell);
  }
};

/// Makes the gradients of what came into the gates of the gates. With dh and dc: do = dh tanh(c),
/// dc += dh o (1 - tanh(c)^2), di = dc g, dg = dc i, df = dc c', where c' are the cells before and
/// dc' = dc f; and through the gates' functions.
struct LstmCellBackward {
  std::size_t width;
  float* gates;
  const float* before;
  const float* cells;
  const float* hidden_gradient;
  float* cell_gradient;  ///< by later steps; becomes that of the cells before
  TROUPE_HOST_DEVICE void operator()(std::size_t at) const {
    float* const i = gates + at / width * 4 * width + at % width;
    float *const f = i + width, *const g = f + width, *const o = g + width;
    const float bent = wide::tanh(cells[at]), given = hidden_gradient[at];
    const float dcell = cell_gradient[at] + given * *o * (1.0f - bent * bent);
    *o = given * bent * (*o * (1.0f - *o));
    const float input = *i, candidate = *g;
    *i = dcell * candidate * (input * (1.0f - input));
    *g = dcell * input * (1.0f - candidate * candidate);
    const float to_before = dcell * *f;
    cell_gradient[at] = to_before;
    // The cells' gradient has the gate as a factor already.
    *f = before == nullptr ? 0.0f : to_before * before[at] * (1.0f - *f);
  }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_LSTM_BODIES(each)                                                \
  each(troupe::kernels::cuda::SwapAxes) each(troupe::kernels::cuda::LstmBiases) \
      each(troupe::kernels::cuda::LstmCellForward) each(troupe::kernels::cuda::LstmCellBackward)
