#include "tests/kernels/reference.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace troupe::kernels {

namespace {

using Values = std::vector<double>;

struct Sample {
  const Layer& layer;
  const double* weight;
  const double* bias;
  const double* x;
  double* y;

  std::int64_t in(std::size_t axis) const { return layer.input[axis]; }
  std::int64_t out(std::size_t axis) const { return layer.output[axis]; }
  bool inside(std::int64_t row, std::int64_t column) const {
    return row >= 0 && row < in(1) && column >= 0 && column < in(2);
  }
  double at(std::int64_t channel, std::int64_t row, std::int64_t column) const {
    return x[(channel * in(1) + row) * in(2) + column];
  }
  double& result(std::int64_t channel, std::int64_t row, std::int64_t column) const {
    return y[(channel * out(1) + row) * out(2) + column];
  }

  void operator()(const Convolution& spec) const {
    const std::int64_t k = spec.kernel;
    for (std::int64_t o = 0; o < out(0); ++o)
      for (std::int64_t row = 0; row < out(1); ++row)
        for (std::int64_t column = 0; column < out(2); ++column) {
          double sum = bias[o];
          for (std::int64_t i = 0; i < in(0); ++i)
            for (std::int64_t dy = 0; dy < k; ++dy)
              for (std::int64_t dx = 0; dx < k; ++dx) {
                const std::int64_t from_row = row * spec.stride - spec.padding + dy;
                const std::int64_t from_column = column * spec.stride - spec.padding + dx;
                if (inside(from_row, from_column))
                  sum += weight[((o * in(0) + i) * k + dy) * k + dx] * at(i, from_row, from_column);
              }
          result(o, row, column) = sum;
        }
  }

  void operator()(const Linear&) const {
    for (std::int64_t o = 0; o < out(0); ++o) {
      y[o] = bias[o];
      for (std::int64_t i = 0; i < in(0); ++i) y[o] += weight[o * in(0) + i] * x[i];
    }
  }

  void operator()(const Relu&) const {
    for (std::int64_t i = 0; i < layer.input.elements(); ++i) y[i] = std::max(x[i], 0.0);
  }

  void operator()(const Pooling& spec) const {
    const bool is_max = spec.kind == Pooling::Kind::max;
    for (std::int64_t c = 0; c < out(0); ++c)
      for (std::int64_t row = 0; row < out(1); ++row)
        for (std::int64_t column = 0; column < out(2); ++column) {
          double value = is_max ? -std::numeric_limits<double>::infinity() : 0.0;
          for (std::int64_t dy = 0; dy < spec.kernel; ++dy)
            for (std::int64_t dx = 0; dx < spec.kernel; ++dx) {
              const std::int64_t from_row = row * spec.stride - spec.padding + dy;
              const std::int64_t from_column = column * spec.stride - spec.padding + dx;
              if (!inside(from_row, from_column)) continue;
              const double element = at(c, from_row, from_column);
              value = is_max ? std::max(value, element) : value + element;
            }
          result(c, row, column) =
              is_max ? value : value / static_cast<double>(spec.kernel * spec.kernel);
        }
  }

  void operator()(const Flatten&) const { std::copy_n(x, layer.input.elements(), y); }
};

}  // namespace

std::vector<double> reference_forward(const Model& model, std::int64_t batch,
                                      std::span<const double> parameters,
                                      std::span<const double> input) {
  Values current(input.begin(), input.end());
  for (const Layer& layer : model.layers()) {
    const std::int64_t in = layer.input.elements();
    const std::int64_t out = layer.output.elements();
    Values next(static_cast<std::size_t>(batch * out));
    const auto pointer = [&](std::optional<std::size_t> index) {
      return index ? parameters.data() + model.parameters()[*index].offset : nullptr;
    };
    for (std::int64_t n = 0; n < batch; ++n)
      std::visit(Sample{layer, pointer(layer.weight), pointer(layer.bias), current.data() + n * in,
                        next.data() + n * out},
                 layer.spec);
    current = std::move(next);
  }
  return current;
}

}  // namespace troupe::kernels
