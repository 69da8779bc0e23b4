#include "tests/kernels/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace troupe::kernels {

namespace {

using Values = std::vector<double>;

/// One layer on a whole batch.
struct Batch {
  const Layer& layer;
  std::int64_t batch;
  std::vector<const double*> parameters;  ///< as the layer declares them
  std::vector<const Values*> inputs;
  Values& output;

  std::int64_t in(std::size_t axis) const { return layer.input()[axis]; }
  std::int64_t out(std::size_t axis) const { return layer.output[axis]; }
  const double* x(std::int64_t sample) const {
    return inputs[0]->data() + sample * layer.input().elements();
  }
  double* y(std::int64_t sample) const { return output.data() + sample * layer.output.elements(); }
  bool inside(std::int64_t row, std::int64_t column) const {
    return row >= 0 && row < in(1) && column >= 0 && column < in(2);
  }
  double at(std::int64_t n, std::int64_t channel, std::int64_t row, std::int64_t column) const {
    return x(n)[(channel * in(1) + row) * in(2) + column];
  }
  static std::int64_t last(const Shape& shape) { return shape[shape.rank() - 1]; }
  static std::size_t at(std::int64_t row, std::int64_t width, std::int64_t i) {
    return static_cast<std::size_t>(row * width + i);
  }
  template <class Body>
  void each_output(const Body& body) const {
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t c = 0; c < out(0); ++c)
        for (std::int64_t row = 0; row < out(1); ++row)
          for (std::int64_t column = 0; column < out(2); ++column)
            y(n)[(c * out(1) + row) * out(2) + column] = body(n, c, row, column);
  }
  /// Of `width` elements, in the whole batch.
  template <class Body>
  void each_row(std::int64_t width, const Body& body) const {
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(output.size()) / width; ++row)
      for (std::int64_t i = 0; i < width; ++i) output[at(row, width, i)] = body(row, i);
  }
  template <class Body>
  void each_element(const Body& body) const {
    for (std::size_t i = 0; i < output.size(); ++i) output[i] = body(i);
  }

  void operator()(const Convolution& spec) const {
    const std::int64_t k = spec.kernel;
    const std::int64_t in_group = in(0) / spec.groups;
    const std::int64_t out_group = out(0) / spec.groups;
    each_output([&](std::int64_t n, std::int64_t o, std::int64_t row, std::int64_t column) {
      double sum = spec.bias ? parameters[1][o] : 0.0;
      for (std::int64_t i = 0; i < in_group; ++i)
        for (std::int64_t dy = 0; dy < k; ++dy)
          for (std::int64_t dx = 0; dx < k; ++dx) {
            const std::int64_t from_row = row * spec.stride - spec.padding + dy * spec.dilation;
            const std::int64_t from_column =
                column * spec.stride - spec.padding + dx * spec.dilation;
            if (inside(from_row, from_column))
              sum += parameters[0][((o * in_group + i) * k + dy) * k + dx] *
                     at(n, o / out_group * in_group + i, from_row, from_column);
          }
      return sum;
    });
  }

  void operator()(const Linear& spec) const {
    const std::int64_t features = last(layer.input());
    each_row(spec.out_features, [&](std::int64_t row, std::int64_t o) {
      double sum = spec.bias ? parameters[1][o] : 0.0;
      for (std::int64_t i = 0; i < features; ++i)
        sum += parameters[0][o * features + i] * (*inputs[0])[at(row, features, i)];
      return sum;
    });
  }

  void operator()(const BatchNorm& spec) const {
    const std::int64_t area = in(1) * in(2);
    for (std::int64_t c = 0; c < in(0); ++c) {
      double sum = 0.0, squares = 0.0;
      const auto each = [&](const auto& body) {
        for (std::int64_t n = 0; n < batch; ++n)
          for (std::int64_t i = 0; i < area; ++i) body(n, c * area + i);
      };
      const auto count = static_cast<double>(batch * area);
      each([&](std::int64_t n, std::int64_t i) { sum += x(n)[i]; });
      const double mean = sum / count;
      each([&](std::int64_t n, std::int64_t i) { squares += (x(n)[i] - mean) * (x(n)[i] - mean); });
      const double deviation = std::sqrt(squares / count + static_cast<double>(spec.epsilon));
      each([&](std::int64_t n, std::int64_t i) {
        y(n)[i] = (x(n)[i] - mean) / deviation * parameters[0][c] + parameters[1][c];
      });
    }
  }

  void operator()(const Relu&) const {
    each_element([&](std::size_t i) { return std::max((*inputs[0])[i], 0.0); });
  }

  void operator()(const Pooling& spec) const {
    const bool is_max = spec.kind == Pooling::Kind::max;
    each_output([&](std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t column) {
      double value = is_max ? -std::numeric_limits<double>::infinity() : 0.0;
      for (std::int64_t dy = 0; dy < spec.kernel; ++dy)
        for (std::int64_t dx = 0; dx < spec.kernel; ++dx) {
          const std::int64_t from_row = row * spec.stride - spec.padding + dy;
          const std::int64_t from_column = column * spec.stride - spec.padding + dx;
          if (!inside(from_row, from_column)) continue;
          const double element = at(n, c, from_row, from_column);
          value = is_max ? std::max(value, element) : value + element;
        }
      return is_max ? value : value / static_cast<double>(spec.kernel * spec.kernel);
    });
  }

  void operator()(const AdaptivePooling& spec) const {
    const bool is_max = spec.kind == Pooling::Kind::max;
    const auto begin = [](std::int64_t i, std::int64_t n, std::int64_t m) {
      return static_cast<std::int64_t>(
          std::floor(static_cast<double>(i * n) / static_cast<double>(m)));
    };
    const auto end = [](std::int64_t i, std::int64_t n, std::int64_t m) {
      return static_cast<std::int64_t>(
          std::ceil(static_cast<double>((i + 1) * n) / static_cast<double>(m)));
    };
    each_output([&](std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t column) {
      double value = is_max ? -std::numeric_limits<double>::infinity() : 0.0;
      double count = 0.0;
      for (std::int64_t r = begin(row, in(1), spec.height); r < end(row, in(1), spec.height); ++r)
        for (std::int64_t k = begin(column, in(2), spec.width); k < end(column, in(2), spec.width);
             ++k) {
          value = is_max ? std::max(value, at(n, c, r, k)) : value + at(n, c, r, k);
          ++count;
        }
      return is_max ? value : value / count;
    });
  }

  void operator()(const GlobalAveragePooling&) const {
    each_output([&](std::int64_t n, std::int64_t c, std::int64_t, std::int64_t) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < in(1) * in(2); ++i) sum += x(n)[c * in(1) * in(2) + i];
      return sum / static_cast<double>(in(1) * in(2));
    });
  }

  void operator()(const Embedding& spec) const {
    each_row(spec.width, [&](std::int64_t row, std::int64_t i) {
      const auto id = static_cast<std::int64_t>((*inputs[0])[static_cast<std::size_t>(row)]);
      return parameters[0][id * spec.width + i];
    });
  }

  void operator()(const PositionEmbedding&) const {
    each_row(in(1), [&](std::int64_t row, std::int64_t i) {
      return (*inputs[0])[at(row, in(1), i)] + parameters[0][row % in(0) * in(1) + i];
    });
  }

  /// Runs of `n` elements are normalised to mean 0 (unless that is left out) and variance 1.
  void normalize(std::int64_t n, bool centered, double epsilon) const {
    for (std::int64_t run = 0; run < batch * layer.input().elements() / n; ++run) {
      double mean = 0.0, square = 0.0;
      for (std::int64_t i = 0; centered && i < n; ++i) mean += (*inputs[0])[at(run, n, i)];
      mean /= static_cast<double>(n);
      for (std::int64_t i = 0; i < n; ++i)
        square += std::pow((*inputs[0])[at(run, n, i)] - mean, 2.0);
      const double deviation = std::sqrt(square / static_cast<double>(n) + epsilon);
      for (std::int64_t i = 0; i < n; ++i)
        output[at(run, n, i)] = ((*inputs[0])[at(run, n, i)] - mean) / deviation;
    }
  }

  void operator()(const LayerNorm& spec) const {
    const std::int64_t width = last(layer.input());
    normalize(width, true, static_cast<double>(spec.epsilon));
    each_row(width, [&](std::int64_t row, std::int64_t i) {
      return output[at(row, width, i)] * parameters[0][i] + parameters[1][i];
    });
  }

  void operator()(const RmsNorm& spec) const {
    const std::int64_t width = last(layer.input());
    normalize(width, false, static_cast<double>(spec.epsilon));
    each_row(width, [&](std::int64_t row, std::int64_t i) {
      return output[at(row, width, i)] * parameters[0][i];
    });
  }

  void operator()(const GroupNorm& spec) const {
    const std::int64_t area = layer.input().elements() / in(0);
    normalize(in(0) / spec.groups * area, true, static_cast<double>(spec.epsilon));
    each_row(area, [&](std::int64_t row, std::int64_t i) {
      return output[at(row, area, i)] * parameters[0][row % in(0)] + parameters[1][row % in(0)];
    });
  }

  void operator()(const Gelu& spec) const {
    const double slope = std::sqrt(2.0 / 3.14159265358979323846);
    each_element([&](std::size_t i) {
      const double v = (*inputs[0])[i];
      return v / 2 *
             (1 + (spec.form == Gelu::Form::tanh ? std::tanh(slope * (v + 0.044715 * v * v * v))
                                                 : std::erf(v / std::sqrt(2.0))));
    });
  }
  void operator()(const Silu&) const {
    each_element([&](std::size_t i) { return (*inputs[0])[i] / (1 + std::exp(-(*inputs[0])[i])); });
  }
  void operator()(const Sigmoid&) const {
    each_element([&](std::size_t i) { return 1 / (1 + std::exp(-(*inputs[0])[i])); });
  }
  void operator()(const Tanh&) const {
    each_element([&](std::size_t i) { return std::tanh((*inputs[0])[i]); });
  }

  void operator()(const Concat& spec) const {
    const auto axis = static_cast<std::size_t>(spec.axis);
    std::int64_t inner = 1;
    for (std::size_t i = axis + 1; i < layer.output.rank(); ++i) inner *= layer.output[i];
    std::int64_t before = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::int64_t run = layer.inputs[k][axis] * inner;
      const std::int64_t width = layer.output[axis] * inner;
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(inputs[k]->size()); ++i)
        output[at(i / run, width, before + i % run)] = (*inputs[k])[static_cast<std::size_t>(i)];
      before += run;
    }
  }

  /// Of inference.
  void operator()(const Dropout&) const { output = *inputs[0]; }

  void operator()(const Attention& spec) const {
    const std::int64_t tokens = in(0), heads = spec.heads, keys = spec.key_heads();
    const std::int64_t dim = out(1) / heads;
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t head = 0; head < heads; ++head) {
        const double* const q = x(n) + head * dim;
        const double* const k = x(n) + (heads + head / (heads / keys)) * dim;
        const double* const v = k + keys * dim;
        for (std::int64_t t = 0; t < tokens; ++t) {
          const std::int64_t seen = spec.causal ? t + 1 : tokens;
          Values power(static_cast<std::size_t>(seen));
          double sum = 0.0;
          for (std::int64_t s = 0; s < seen; ++s) {
            double score = 0.0;
            for (std::int64_t i = 0; i < dim; ++i) score += q[t * in(1) + i] * k[s * in(1) + i];
            power[static_cast<std::size_t>(s)] =
                std::exp(score / std::sqrt(static_cast<double>(dim)));
            sum += power[static_cast<std::size_t>(s)];
          }
          for (std::int64_t i = 0; i < dim; ++i) {
            double value = 0.0;
            for (std::int64_t s = 0; s < seen; ++s)
              value += power[static_cast<std::size_t>(s)] * v[s * in(1) + i];
            y(n)[t * out(1) + head * dim + i] = value / sum;
          }
        }
      }
  }

  static double logistic(double x) { return 1 / (1 + std::exp(-x)); }

  /// One layer of an LSTM on one sample: x [time, features] to [time, hidden].
  static Values lstm_layer(const Values& x, std::int64_t features, std::int64_t hidden,
                           const double* const* p) {
    Values y, h(static_cast<std::size_t>(hidden)), c = h;
    for (std::size_t t = 0; t < x.size() / static_cast<std::size_t>(features); ++t) {
      Values gates(static_cast<std::size_t>(4 * hidden));
      for (std::int64_t j = 0; j < 4 * hidden; ++j) {
        double sum = p[2][j] + p[3][j];
        for (std::int64_t i = 0; i < features; ++i)
          sum += p[0][j * features + i] * x[at(static_cast<std::int64_t>(t), features, i)];
        for (std::int64_t i = 0; i < hidden; ++i)
          sum += p[1][j * hidden + i] * h[static_cast<std::size_t>(i)];
        gates[static_cast<std::size_t>(j)] = sum;
      }
      for (std::size_t i = 0; i < h.size(); ++i) {
        const auto gate = [&](std::size_t k) { return gates[k * h.size() + i]; };
        c[i] = logistic(gate(1)) * c[i] + logistic(gate(0)) * std::tanh(gate(2));
        h[i] = logistic(gate(3)) * std::tanh(c[i]);
      }
      y.insert(y.end(), h.begin(), h.end());
    }
    return y;
  }

  void operator()(const Lstm& spec) const {
    for (std::int64_t n = 0; n < batch; ++n) {
      Values values(x(n), x(n) + layer.input().elements());
      std::int64_t features = in(1);
      for (std::int64_t k = 0; k < spec.layers; ++k, features = spec.hidden)
        values =
            lstm_layer(values, features, spec.hidden, &parameters[static_cast<std::size_t>(4 * k)]);
      std::copy(values.end() - layer.output.elements(), values.end(), y(n));
    }
  }

  void operator()(const Custom& spec) const {
    dynamic_cast<const ReferenceLayer&>(*spec.layer).reference(batch, inputs, parameters, output);
  }

  void operator()(const Flatten&) const { output = *inputs[0]; }
  void operator()(const Reshape&) const { output = *inputs[0]; }

  void operator()(const Add&) const {
    each_element([&](std::size_t i) { return (*inputs[0])[i] + (*inputs[1])[i]; });
  }
};

}  // namespace

std::vector<double> reference_forward(const Model& model, std::int64_t batch,
                                      std::span<const double> parameters,
                                      std::span<const double> input) {
  std::vector<Values> values{{input.begin(), input.end()}};
  for (const Layer& layer : model.layers()) {
    Values output(static_cast<std::size_t>(batch * layer.output.elements()));
    Batch run{layer, batch, {}, {}, output};
    for (const std::size_t index : layer.parameters)
      run.parameters.push_back(parameters.data() + model.parameters()[index].offset);
    for (const std::size_t from : layer.from) run.inputs.push_back(&values[from]);
    std::visit(run, layer.spec);
    values.push_back(std::move(output));
  }
  return values.back();
}

}  // namespace troupe::kernels
