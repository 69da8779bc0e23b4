#include "tests/kernels/cuda/stand_in/convolution.hpp"

#include <cstddef>

namespace troupe::stand_in {

namespace {

float& element(float* data, const Tensor& tensor, std::int64_t a, std::int64_t b, std::int64_t c,
               std::int64_t d) {
  return data[a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2] +
              d * tensor.strides[3]];
}

template <class Body>
void each_element(const Tensor& tensor, const Body& body) {
  for (std::int64_t a = 0; a < tensor.dims[0]; ++a)
    for (std::int64_t b = 0; b < tensor.dims[1]; ++b)
      for (std::int64_t c = 0; c < tensor.dims[2]; ++c)
        for (std::int64_t d = 0; d < tensor.dims[3]; ++d) body(a, b, c, d);
}

}  // namespace

bool fits(const ConvolutionPlanned& p) {
  const auto &x = p.x.dims, &w = p.weight.dims, &y = p.y.dims;
  for (const Tensor* tensor : {&p.x, &p.weight, &p.y})
    if (tensor->type != CUDNN_DATA_FLOAT) return false;
  if (p.compute != CUDNN_DATA_FLOAT || x[0] != y[0] || w[0] != y[1]) return false;
  // The number of groups is the ratio of the two numbers of input channels.
  if (x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t window = (w[2 + i] - 1) * p.dilations[i] + 1;
    const std::int64_t whole = x[2 + i] + p.pre_paddings[i] + p.post_paddings[i];
    if (y[2 + i] != (whole - window) / p.strides[i] + 1) return false;
  }
  return true;
}

void convolve(const ConvolutionPlanned& p, float* x, float* weight, float* y) {
  const std::int64_t groups = p.x.dims[1] / p.weight.dims[1];
  const std::int64_t outputs = p.weight.dims[0] / groups;  // channels of a group
  const bool forward = p.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  const bool data = p.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  float* const result = forward ? y : data ? x : weight;
  const Tensor& of_result = forward ? p.y : data ? p.x : p.weight;
  // With a beta of 0 what was there is not read.
  each_element(of_result, [&](auto a, auto b, auto c, auto d) {
    float& value = element(result, of_result, a, b, c, d);
    value = p.beta == 0.0f ? 0.0f : p.beta * value;
  });
  each_element(p.y, [&](auto n, auto out, auto row, auto column) {
    for (std::int64_t in = 0; in < p.weight.dims[1]; ++in)
      for (std::int64_t r = 0; r < p.weight.dims[2]; ++r)
        for (std::int64_t c = 0; c < p.weight.dims[3]; ++c) {
          const std::int64_t from_row = row * p.strides[0] + r * p.dilations[0] - p.pre_paddings[0];
          const std::int64_t from_column =
              column * p.strides[1] + c * p.dilations[1] - p.pre_paddings[1];
          if (from_row < 0 || from_row >= p.x.dims[2] || from_column < 0 ||
              from_column >= p.x.dims[3])
            continue;
          const bool flipped = p.mode == CUDNN_CONVOLUTION;
          float& pixel =
              element(x, p.x, n, out / outputs * p.weight.dims[1] + in, from_row, from_column);
          float& factor = element(weight, p.weight, out, in, flipped ? p.weight.dims[2] - 1 - r : r,
                                  flipped ? p.weight.dims[3] - 1 - c : c);
          float& sum = element(y, p.y, n, out, row, column);
          if (forward)
            sum += p.alpha * (pixel * factor);
          else if (data)
            pixel += p.alpha * (sum * factor);
          else
            factor += p.alpha * (sum * pixel);
        }
  });
}

}  // namespace troupe::stand_in
