#include "tests/kernels/cuda/stand_in/convolution.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/short_floats.hpp"

namespace troupe::stand_in {

namespace {

std::int64_t offset(const Tensor& tensor, std::int64_t a, std::int64_t b, std::int64_t c,
                    std::int64_t d) {
  return a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2] +
         d * tensor.strides[3];
}

float factor_at(const void* data, const Tensor& tensor, std::int64_t at) {
  if (tensor.type == CUDNN_DATA_FLOAT) return static_cast<const float*>(data)[at];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[at];
  return tensor.type == CUDNN_DATA_HALF ? kernels::f16_value(bits) : kernels::bf16_value(bits);
}

bool is_channels_last(const Tensor& tensor) {
  const auto& d = tensor.dims;
  return tensor.strides == std::vector{d[1] * d[2] * d[3], std::int64_t{1}, d[3] * d[1], d[1]};
}

bool is_forward(const ConvolutionPlanned& p) {
  return p.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
}
bool is_data(const ConvolutionPlanned& p) {
  return p.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
}

/// Of the three tensors: which is the result, and which are factors.
struct Roles {
  explicit Roles(const ConvolutionPlanned& p)
      : result(is_forward(p) ? p.y
               : is_data(p)  ? p.x
                             : p.weight),
        first(is_forward(p) ? p.x : p.y),
        second(is_forward(p) || is_data(p) ? p.weight : p.x) {}
  const Tensor &result, &first, &second;
};

bool types_fit(const ConvolutionPlanned& p) {
  const Roles roles(p);
  if (p.compute != CUDNN_DATA_FLOAT || roles.result.type != CUDNN_DATA_FLOAT ||
      roles.first.type != roles.second.type)
    return false;
  if (roles.first.type == CUDNN_DATA_FLOAT) return !roles.result.is_virtual && !p.copy;
  constexpr std::int64_t kRun = 8;
  for (const Tensor* tensor : {&p.x, &p.weight, &p.y})
    if (!is_channels_last(*tensor) || tensor->dims[1] % kRun != 0) return false;
  return p.weight.dims[0] % kRun == 0 && p.x.dims[1] == p.weight.dims[1] &&
         roles.result.is_virtual && p.copy && !p.copy->is_virtual &&
         p.copy->type == CUDNN_DATA_FLOAT && p.copy->dims == roles.result.dims &&
         p.copy->strides == roles.result.strides;
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
  if (!types_fit(p) || x[0] != y[0] || w[0] != y[1]) return false;
  // The number of groups is the ratio of the two numbers of input channels.
  if (x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t window = (w[2 + i] - 1) * p.dilations[i] + 1;
    const std::int64_t whole = x[2 + i] + p.pre_paddings[i] + p.post_paddings[i];
    if (y[2 + i] != (whole - window) / p.strides[i] + 1) return false;
  }
  return true;
}

void convolve(const ConvolutionPlanned& p, void* x, void* weight, void* y) {
  const std::int64_t groups = p.x.dims[1] / p.weight.dims[1];
  const std::int64_t outputs = p.weight.dims[0] / groups;  // channels of a group
  const Roles roles(p);
  auto* const result = static_cast<float*>(is_forward(p) ? y : is_data(p) ? x : weight);
  const void* const first = is_forward(p) ? x : y;
  const void* const second = is_forward(p) || is_data(p) ? weight : x;
  // With a beta of 0 what was there is not read.
  each_element(roles.result, [&](auto a, auto b, auto c, auto d) {
    float& value = result[offset(roles.result, a, b, c, d)];
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
          const std::int64_t pixel =
              offset(p.x, n, out / outputs * p.weight.dims[1] + in, from_row, from_column);
          const std::int64_t factor =
              offset(p.weight, out, in, flipped ? p.weight.dims[2] - 1 - r : r,
                     flipped ? p.weight.dims[3] - 1 - c : c);
          const std::int64_t sum = offset(p.y, n, out, row, column);
          const auto at = [&](const Tensor& tensor) {
            return &tensor == &p.x ? pixel : &tensor == &p.weight ? factor : sum;
          };
          result[at(roles.result)] += p.alpha * (factor_at(first, roles.first, at(roles.first)) *
                                                 factor_at(second, roles.second, at(roles.second)));
        }
  });
}

}  // namespace troupe::stand_in
