#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "kernels/cpu/internal/column_sums.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/cpu/internal/portable.hpp"
#include "kernels/internal/wide_loop.hpp"
#include "kernels/internal/wide_math.hpp"
#include "kernels/internal/wide_rows.hpp"

namespace troupe::kernels::cpu {

namespace {

/// A run of rows of features and what is kept of each. For the root mean square `bias` is null, and
/// the means are zero.
struct NormRows {
  std::size_t width;
  bool centered;
  float epsilon;
  const float* weight;
  const float* bias;
  float* means;
  float* inverses;  ///< of the deviations
};

}  // namespace

TROUPE_WIDE_LOOP(normalize_rows,
                 (const NormRows& norm, std::size_t begin, std::size_t end, const float* x,
                  float* y),
                 (norm, begin, end, x, y)) {
  const std::size_t n = norm.width;
  const float count = static_cast<float>(n);
  for (std::size_t row = begin; row < end; ++row) {
    const float* const from = x + row * n;
    float* const to = y + row * n;
    const float mean = norm.centered ? wide::sum(from, n) / count : 0.0f;
    const float variance = wide::squares(from, mean, n) / count;
    const float inverse = 1.0f / std::sqrt(variance + norm.epsilon);
    norm.means[row] = mean;
    norm.inverses[row] = inverse;
    if (norm.bias != nullptr) {
      TROUPE_INDEPENDENT
      for (std::size_t i = 0; i < n; ++i)
        to[i] = (from[i] - mean) * inverse * norm.weight[i] + norm.bias[i];
    } else {
      TROUPE_INDEPENDENT
      for (std::size_t i = 0; i < n; ++i) to[i] = from[i] * inverse * norm.weight[i];
    }
  }
}

// Adds to the parameters' gradients, and gives the input's if `dx` is not null; `row_floats` is
// scratch of two rows. With z the normalised row and g = dy * weight,
// dx = (g - mean(g) - z mean(g z)) / deviation.
TROUPE_WIDE_LOOP(normalize_rows_backward,
                 (const NormRows& norm, std::size_t begin, std::size_t end, const float* x,
                  const float* dy, float* dx, float* dweight, float* dbias, float* row_floats),
                 (norm, begin, end, x, dy, dx, dweight, dbias, row_floats)) {
  const std::size_t n = norm.width;
  const float count = static_cast<float>(n);
  float* const z = row_floats;
  float* const g = row_floats + n;
  for (std::size_t row = begin; row < end; ++row) {
    const float* const from = x + row * n;
    const float* const given = dy + row * n;
    const float mean = norm.means[row];
    const float inverse = norm.inverses[row];
    TROUPE_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) {
      const float normal = (from[i] - mean) * inverse;
      z[i] = normal;
      g[i] = given[i] * norm.weight[i];
      dweight[i] += given[i] * normal;
      dbias[i] += given[i];
    }
    if (dx == nullptr) continue;
    const float mean_g = norm.centered ? wide::sum(g, n) / count : 0.0f;
    const float mean_gz = wide::dot(g, z, n) / count;
    float* const to = dx + row * n;
    TROUPE_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) to[i] = inverse * (g[i] - mean_g - z[i] * mean_gz);
  }
}

namespace {

/// Layer norm and RMS norm. The parameters' gradients are sums over runs of rows, which are then
/// added in order: the same bits for any number of threads.
class LayerNormKernel final : public LayerKernel {
public:
  static MadeKernel make(const KernelRequest& request) {
    auto kernel = std::make_unique<LayerNormKernel>(request);
    const auto rows = static_cast<Index>(kernel->rows_);
    const auto width = static_cast<Index>(kernel->width_);
    TROUPE_ASSIGN(kernel->statistics_, Scratch::zeros(2 * rows));
    const Index runs = request.mode == Mode::training ? static_cast<Index>(kRuns) : 0;
    TROUPE_ASSIGN(kernel->scratch_, Scratch::zeros(4 * runs * width));
    return MadeKernel(std::move(kernel));
  }

  explicit LayerNormKernel(const KernelRequest& request)
      : threads_(request.threads), weight_(request.offset_of(0)) {
    if (const auto* spec = std::get_if<LayerNorm>(&request.layers[0].spec)) {
      epsilon_ = spec->epsilon;
      centered_ = true;
      bias_ = request.offset_of(1);
    } else {
      epsilon_ = std::get<RmsNorm>(request.layers[0].spec).epsilon;
    }
    inputs_ = {plain_activation(request.input().shape)};
    output_ = inputs_[0];
    const Shape& shape = output_.shape;
    width_ = static_cast<std::size_t>(shape[shape.rank() - 1]);
    rows_ = output_.floats / width_;
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_output = false, .in_place = true};
  }

  Status forward(const ForwardPass& pass) override {
    const NormRows norm = rows(pass.parameters);
    const std::size_t least = std::max<std::size_t>(1, kLeast / width_);
    parallel_for(threads_, rows_, least, [&](std::size_t begin, std::size_t end) {
      normalize_rows(norm, begin, end, pass.input(), pass.output);
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    const NormRows norm = rows(pass.parameters);
    const std::size_t run = (rows_ + kRuns - 1) / kRuns;
    float* const dweights = scratch_.data();
    float* const dbiases = dweights + kRuns * width_;
    std::fill(dweights, dweights + 2 * kRuns * width_, 0.0f);
    const auto one_run = [&](std::size_t i, std::size_t) {
      const std::size_t begin = std::min(rows_, i * run);
      normalize_rows_backward(norm, begin, std::min(rows_, begin + run), pass.input(),
                              pass.output_gradient, pass.input_gradient(), dweights + i * width_,
                              dbiases + i * width_, dbiases + kRuns * width_ + i * 2 * width_);
    };
    parallel_each(output_.floats < kLeast ? 1 : threads_, kRuns, one_run);
    column_sums(dweights, kRuns, width_, pass.gradients + weight_, /*add=*/false, threads_);
    if (centered_)
      column_sums(dbiases, kRuns, width_, pass.gradients + bias_, /*add=*/false, threads_);
    return {};
  }

private:
  static constexpr std::size_t kRuns = 16;
  /// Floats that are not worth a thread.
  static constexpr std::size_t kLeast = 1 << 13;

  NormRows rows(const float* parameters) {
    return {width_,
            centered_,
            epsilon_,
            parameters + weight_,
            centered_ ? parameters + bias_ : nullptr,
            statistics_.data(),
            statistics_.data() + rows_};
  }

  int threads_;
  std::size_t weight_, bias_ = 0;
  float epsilon_ = 0.0f;
  bool centered_ = false;
  std::size_t width_ = 0, rows_ = 0;
  Scratch statistics_;
  Scratch scratch_;  ///< of each run: gradients of weight and bias, and two rows
};

}  // namespace

MadeKernel make_layer_norm(const KernelRequest& request) {
  return LayerNormKernel::make(request);
}

}  // namespace troupe::kernels::cpu
