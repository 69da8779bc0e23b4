#include "kernels/cpu/internal/lstm_step.hpp"

#include <algorithm>

#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/wide_loop.hpp"
#include "kernels/internal/wide_math.hpp"

namespace troupe::kernels::cpu {

// Element by element, so that rows may be split in any way.

TROUPE_WIDE_LOOP(gates_forward, (const LstmStep& step, std::size_t begin, std::size_t end),
                 (step, begin, end)) {
  const std::size_t n = step.width;
  for (std::size_t row = begin; row < end; ++row) {
    float* const i = step.gates + row * 4 * n;
    float *const f = i + n, *const g = f + n, *const o = g + n;
    const float* const before = step.before == nullptr ? nullptr : step.before + row * n;
    float* const cells = step.cells + row * n;
    float* const hidden = step.hidden + row * n;
    TROUPE_INDEPENDENT
    for (std::size_t k = 0; k < n; ++k) {
      i[k] = wide::sigmoid(i[k]);
      f[k] = wide::sigmoid(f[k]);
      g[k] = wide::tanh(g[k]);
      o[k] = wide::sigmoid(o[k]);
    }
    if (before == nullptr) {
      TROUPE_INDEPENDENT
      for (std::size_t k = 0; k < n; ++k) cells[k] = i[k] * g[k];
    } else {
      TROUPE_INDEPENDENT
      for (std::size_t k = 0; k < n; ++k) cells[k] = f[k] * before[k] + i[k] * g[k];
    }
    TROUPE_INDEPENDENT
    for (std::size_t k = 0; k < n; ++k) hidden[k] = o[k] * wide::tanh(cells[k]);
  }
}

// With dh and dc: do = dh tanh(c), dc += dh o (1 - tanh(c)^2), di = dc g, dg = dc i, df = dc c',
// where c' are the cells before and dc' = dc f; and through the gates' functions.
TROUPE_WIDE_LOOP(gates_backward,
                 (const LstmStep& step, const float* dh, float* dc, std::size_t begin,
                  std::size_t end),
                 (step, dh, dc, begin, end)) {
  const std::size_t n = step.width;
  for (std::size_t row = begin; row < end; ++row) {
    float* const i = step.gates + row * 4 * n;
    float *const f = i + n, *const g = f + n, *const o = g + n;
    const float* const cells = step.cells + row * n;
    const float* const given = dh + row * n;
    float* const cell = dc + row * n;
    TROUPE_INDEPENDENT
    for (std::size_t k = 0; k < n; ++k) {
      const float bent = wide::tanh(cells[k]);
      cell[k] += given[k] * o[k] * (1.0f - bent * bent);
      o[k] = given[k] * bent * (o[k] * (1.0f - o[k]));
    }
    const float* const before = step.before == nullptr ? nullptr : step.before + row * n;
    TROUPE_INDEPENDENT
    for (std::size_t k = 0; k < n; ++k) {
      const float dcell = cell[k];
      const float input = i[k], candidate = g[k];
      i[k] = dcell * candidate * (input * (1.0f - input));
      g[k] = dcell * input * (1.0f - candidate * candidate);
      cell[k] = dcell * f[k];
    }
    if (before == nullptr) {
      for (std::size_t k = 0; k < n; ++k) f[k] = 0.0f;
      continue;
    }
    // The cells' gradient has the gate as a factor already.
    TROUPE_INDEPENDENT
    for (std::size_t k = 0; k < n; ++k) f[k] = cell[k] * before[k] * (1.0f - f[k]);
  }
}

namespace {

/// Floats of gates that are not worth a thread.
constexpr std::size_t kLeast = 1 << 13;

std::size_t least_rows(const LstmStep& step) {
  return std::max<std::size_t>(1, kLeast / (4 * step.width));
}

}  // namespace

void lstm_step_forward(const LstmStep& step, std::size_t batch, int threads) {
  parallel_for(threads, batch, least_rows(step),
               [&](std::size_t begin, std::size_t end) { gates_forward(step, begin, end); });
}

void lstm_step_backward(const LstmStep& step, const float* hidden_gradient, float* cell_gradient,
                        std::size_t batch, int threads) {
  parallel_for(threads, batch, least_rows(step), [&](std::size_t begin, std::size_t end) {
    gates_backward(step, hidden_gradient, cell_gradient, begin, end);
  });
}

}  // namespace troupe::kernels::cpu
