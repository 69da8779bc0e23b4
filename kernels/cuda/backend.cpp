#include "kernels/cuda/internal/backend.hpp"

#include "kernels/internal/kernel_table.hpp"

namespace troupe::kernels::cuda {

namespace {

/// A maker for one type of factors.
template <MadeKernel (*make)(Context&, const KernelRequest&, DType), DType factors>
MadeKernel of(Context& context, const KernelRequest& request) {
  return make(context, request, factors);
}

constexpr KernelEntry<Maker> kKernels[] = {
    {Operation::convolution, DType::f32, make_convolution},
    {Operation::convolution, DType::bf16, of<make_rounded_convolution, DType::bf16>},
    {Operation::convolution, DType::f16, of<make_rounded_convolution, DType::f16>},
    {Operation::linear, DType::f32, of<make_linear, DType::f32>},
    {Operation::linear, DType::bf16, of<make_linear, DType::bf16>},
    {Operation::linear, DType::f16, of<make_linear, DType::f16>},
    {Operation::relu, DType::f32, make_relu},
    {Operation::batch_norm, DType::f32, make_batch_norm},
    {Operation::batch_norm_relu, DType::f32, make_batch_norm},
    {Operation::synchronized_batch_norm, DType::f32, make_batch_norm},
    {Operation::synchronized_batch_norm_relu, DType::f32, make_batch_norm},
    {Operation::add, DType::f32, make_add},
    {Operation::add_relu, DType::f32, make_add},
    {Operation::max_pooling, DType::f32, make_pooling},
    {Operation::average_pooling, DType::f32, make_pooling},
    {Operation::adaptive_pooling, DType::f32, make_pooling},
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
    {Operation::attention, DType::bf16, of<make_fused_attention, DType::bf16>},
    {Operation::attention, DType::f16, of<make_fused_attention, DType::f16>},
    {Operation::lstm, DType::f32, make_lstm},
    {Operation::custom, DType::f32, make_custom},
};

}  // namespace

Maker find_kernel(Operation operation, DType dtype) noexcept {
  return find_maker<Maker>(kKernels, operation, dtype);
}

}  // namespace troupe::kernels::cuda
