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
  template <class Body>
  void each_output(const Body& body) const {
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t c = 0; c < out(0); ++c)
        for (std::int64_t row = 0; row < out(1); ++row)
          for (std::int64_t column = 0; column < out(2); ++column)
            y(n)[(c * out(1) + row) * out(2) + column] = body(n, c, row, column);
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
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t o = 0; o < out(0); ++o) {
        double sum = spec.bias ? parameters[1][o] : 0.0;
        for (std::int64_t i = 0; i < in(0); ++i) sum += parameters[0][o * in(0) + i] * x(n)[i];
        y(n)[o] = sum;
      }
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

  void operator()(const GlobalAveragePooling&) const {
    each_output([&](std::int64_t n, std::int64_t c, std::int64_t, std::int64_t) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < in(1) * in(2); ++i) sum += x(n)[c * in(1) * in(2) + i];
      return sum / static_cast<double>(in(1) * in(2));
    });
  }

  void operator()(const Flatten&) const { output = *inputs[0]; }

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
