#pragma once

#include "kernels/cuda/internal/context.hpp"
#include "kernels/internal/backend.hpp"
#include "kernels/internal/layer_kernel.hpp"
#include "kernels/operation.hpp"

/// Kernels on CUDA: cuDNN's convolutions, cuBLASLt's products of matrices, and our own for the
/// rest. No atomic addition of floats anywhere: a pass gives the same bits whenever it is done
/// again on a device of the same kind with the same libraries.
namespace troupe::kernels::cuda {

class CudaStream;

/// As KernelMaker. The context outlives the kernel.
using Maker = MadeKernel (*)(Context& context, const KernelRequest& request);

/// The maker of a kernel, or null.
Maker find_kernel(Operation operation, DType dtype) noexcept;

/// As Backend says.
Status add_into(CudaStream& stream, float* a, const float* b, std::size_t n);
Status compute_loss(CudaStream& stream, const LossPass& pass);

MadeKernel make_activation(Context& context, const KernelRequest& request);
MadeKernel make_add(Context& context, const KernelRequest& request);
MadeKernel make_attention(Context& context, const KernelRequest& request);
MadeKernel make_batch_norm(Context& context, const KernelRequest& request);
MadeKernel make_concat(Context& context, const KernelRequest& request);
MadeKernel make_custom(Context& context, const KernelRequest& request);
MadeKernel make_convolution(Context& context, const KernelRequest& request);
MadeKernel make_dropout(Context& context, const KernelRequest& request);
MadeKernel make_embedding(Context& context, const KernelRequest& request);
/// For bf16 and f16; null where cuDNN has nothing for it, or nothing deterministic.
MadeKernel make_fused_attention(Context& context, const KernelRequest& request, DType factors);
MadeKernel make_group_norm(Context& context, const KernelRequest& request);
/// And of the root mean square.
MadeKernel make_layer_norm(Context& context, const KernelRequest& request);
/// The factors of each product are rounded to that type, as they are for f32.
MadeKernel make_linear(Context& context, const KernelRequest& request, DType factors);
MadeKernel make_lstm(Context& context, const KernelRequest& request);
MadeKernel make_pooling(Context& context, const KernelRequest& request);
MadeKernel make_position_embedding(Context& context, const KernelRequest& request);
MadeKernel make_relu(Context& context, const KernelRequest& request);
/// For bf16 and f16; null where cuDNN has nothing for it.
MadeKernel make_rounded_convolution(Context& context, const KernelRequest& request, DType factors);

}  // namespace troupe::kernels::cuda
