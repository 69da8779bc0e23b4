#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/internal/layer_kernel.hpp"
#include "kernels/internal/loss.hpp"

/// Kernels on the CPU: oneDNN for any shape, and our own loops where those were measured to be
/// faster (names with "portable": the same bits on every CPU, one thread).
namespace troupe::kernels::cpu {

/// The maker of a kernel, or null.
KernelMaker find_kernel(Operation operation, DType dtype) noexcept;

/// As Backend says.
bool lie_alike(const Activation& a, const Activation& b);
void add_into(float* a, const float* b, std::size_t n, int threads);
MadeKernel make_reorder(const Activation& from, const Activation& to, int threads,
                        SharedScratch& scratch);

/// As in troupe::kernels, for many classes.
LossStats softmax_cross_entropy(std::span<const float> logits, std::int64_t classes,
                                std::span<const std::int32_t> labels, std::span<float> gradient,
                                const LossOptions& options);
/// Loss::mean_squared_error of `labels` runs of the outputs, as LossFunction::compute.
LossStats mean_squared_error(std::span<const float> outputs, std::span<const float> targets,
                             std::size_t labels, std::span<float> gradient, int threads);

/// As troupe::kernels::limit_instruction_set.
Status limit_instruction_set(std::string_view name);
/// Whether there are kernels of that type here. Error: `not_supported` with what to do.
Status check_precision(DType precision);
/// What oneDNN uses in this process; from the first call on that is fixed.
std::string library_instruction_set();

MadeKernel make_dnnl_convolution(const KernelRequest& request);
/// With what follows it, at inference. Null where there is nothing faster than layer by layer.
MadeKernel make_folded_convolution(const KernelRequest& request);
MadeKernel make_dnnl_linear(const KernelRequest& request);
/// The factors of each product rounded to bf16, on CPUs that check_precision() takes.
MadeKernel make_bf16_convolution(const KernelRequest& request);
MadeKernel make_bf16_linear(const KernelRequest& request);
/// With the GELU that follows it, if there is one, at inference.
MadeKernel make_gemm_linear(const KernelRequest& request);
MadeKernel make_dnnl_pooling(const KernelRequest& request);
MadeKernel make_adaptive_pooling(const KernelRequest& request);
MadeKernel make_dnnl_reorder(const Activation& from, const Activation& to, int threads,
                             SharedScratch& scratch);
MadeKernel make_dnnl_batch_norm(const KernelRequest& request);
/// For the portable choice, and for synchronized ones.
MadeKernel make_own_batch_norm(const KernelRequest& request);
/// dx = dy where y > 0, else 0; a NaN of y lets it through.
void relu_gradient(const float* y, const float* dy, float* dx, std::size_t n);
MadeKernel make_relu(const KernelRequest& request);
MadeKernel make_add(const KernelRequest& request);
MadeKernel make_embedding(const KernelRequest& request);
MadeKernel make_position_embedding(const KernelRequest& request);
/// And of the root mean square.
MadeKernel make_layer_norm(const KernelRequest& request);
MadeKernel make_group_norm(const KernelRequest& request);
/// y = the GELU of x; they may be the same.
void gelu(Gelu::Form form, const float* x, float* y, std::size_t n);
/// Functions of each element but ReLU.
MadeKernel make_activation(const KernelRequest& request);
MadeKernel make_custom(const KernelRequest& request);
MadeKernel make_concat(const KernelRequest& request);
MadeKernel make_dropout(const KernelRequest& request);
/// Null where the choice is the portable kernels.
MadeKernel make_attention(const KernelRequest& request);
/// Likewise.
MadeKernel make_lstm(const KernelRequest& request);

}  // namespace troupe::kernels::cpu
