#pragma once

#include <cstddef>

namespace troupe::kernels::cpu {

/// One step of one LSTM layer for a batch: rows of `hidden` floats, and of four times as many for
/// the gates i, f, g, o.
struct LstmStep {
  std::size_t width;    ///< hidden
  float* gates;         ///< [batch, 4 hidden]
  const float* before;  ///< the cells of the step before; null: zeros
  float* cells;
  float* hidden;
};

/// Makes gates of what comes into them, and gives cells and hidden state.
void lstm_step_forward(const LstmStep& step, std::size_t batch, int threads);

/// Makes the gradients of what came into the gates of the gates. `hidden_gradient` is that of the
/// step's hidden state; `cell_gradient` that of its cells by later steps, and then the one of the
/// cells before.
void lstm_step_backward(const LstmStep& step, const float* hidden_gradient, float* cell_gradient,
                        std::size_t batch, int threads);

}  // namespace troupe::kernels::cpu
