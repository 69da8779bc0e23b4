#include "kernels/cuda/internal/backend.hpp"

namespace troupe::kernels::cuda {

namespace {

struct Entry {
  Operation operation;
  DType dtype;
  Maker maker;
};

constexpr Entry kKernels[] = {
    {Operation::convolution, DType::f32, make_convolution},
    {Operation::linear, DType::f32, make_linear},
    {Operation::relu, DType::f32, make_relu},
    {Operation::batch_norm, DType::f32, make_batch_norm},
    {Operation::batch_norm_relu, DType::f32, make_batch_norm},
    {Operation::add, DType::f32, make_add},
    {Operation::add_relu, DType::f32, make_add},
    {Operation::max_pooling, DType::f32, make_pooling},
    {Operation::average_pooling, DType::f32, make_pooling},
    {Operation::embedding, DType::f32, make_embedding},
    {Operation::position_embedding, DType::f32, make_position_embedding},
    {Operation::layer_norm, DType::f32, make_layer_norm},
    {Operation::rms_norm, DType::f32, make_layer_norm},
    {Operation::group_norm, DType::f32, make_group_norm},
    {Operation::gelu, DType::f32, make_activation},
    {Operation::silu, DType::f32, make_activation},
    {Operation::sigmoid, DType::f32, make_activation},
    {Operation::tanh, DType::f32, make_activation},
    {Operation::concat, DType::f32, make_concat},
    {Operation::dropout, DType::f32, make_dropout},
    {Operation::attention, DType::f32, make_attention},
};

}  // namespace

Maker find_kernel(Operation operation, DType dtype) noexcept {
  for (const Entry& entry : kKernels)
    if (entry.operation == operation && entry.dtype == dtype) return entry.maker;
  return nullptr;
}

}  // namespace troupe::kernels::cuda
