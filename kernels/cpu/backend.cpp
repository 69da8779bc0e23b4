#include "kernels/cpu/internal/backend.hpp"

#include "kernels/cpu/internal/portable.hpp"
#include "kernels/internal/kernel_table.hpp"

namespace troupe::kernels::cpu {

namespace {

/// Whether our loops run what is asked for; `faster` is what `automatic` goes by.
bool use_portable(const KernelRequest& request, bool faster) {
  switch (request.choice) {
    case KernelChoice::portable:
      return true;
    case KernelChoice::library:
      return false;
    case KernelChoice::automatic:
      break;
  }
  return faster;
}

/// Whether a linear layer is one of features alone, with a weight of its own: what the loops over
/// groups of samples, and the library's kernel for it, are for.
bool is_plain_linear(const KernelRequest& request) {
  const auto& spec = std::get<Linear>(request.layers[0].spec);
  return request.layers[0].input().rank() == 1 && spec.tied_to.empty() && !request.adds_gradient(0);
}

/// Few channels leave the library's channel blocks empty; many fill them, and make our groups of
/// samples too large for the cache.
bool convolution_is_faster(const KernelRequest& request) {
  constexpr std::int64_t kFewChannels = 16;
  const Layer& layer = request.layers.front();
  const auto& spec = std::get<Convolution>(layer.spec);
  return spec.bias && spec.groups == 1 && spec.dilation == 1 && layer.input()[0] <= kFewChannels &&
         layer.output[0] <= kFewChannels;
}

/// Beyond this the weights do not stay in the second-level cache from one group to the next. The
/// library makes more of several threads, if samples are not interleaved for it first.
bool linear_is_faster(const KernelRequest& request) {
  constexpr std::int64_t kWeights = 1 << 17;
  const Layer& layer = request.layers.front();
  return std::get<Linear>(layer.spec).bias && layer.input()[0] * layer.output[0] <= kWeights &&
         (request.threads == 1 || request.input().layout == Activation::Layout::interleaved);
}

MadeKernel make_convolution(const KernelRequest& request) {
  return use_portable(request, convolution_is_faster(request)) ? make_portable_convolution(request)
                                                               : make_dnnl_convolution(request);
}

MadeKernel make_fused_convolution(const KernelRequest& request) {
  return use_portable(request, convolution_is_faster(request)) ? make_portable_convolution(request)
                                                               : MadeKernel(nullptr);
}

/// At inference, where the library computes the convolution.
MadeKernel make_convolution_run(const KernelRequest& request) {
  if (request.mode != Mode::inference || use_portable(request, convolution_is_faster(request)))
    return MadeKernel(nullptr);
  return make_folded_convolution(request);
}

MadeKernel make_linear(const KernelRequest& request) {
  if (!is_plain_linear(request))
    return request.choice == KernelChoice::portable ? MadeKernel(nullptr)
                                                    : make_gemm_linear(request);
  return use_portable(request, linear_is_faster(request)) ? make_portable_linear(request)
                                                          : make_dnnl_linear(request);
}

/// At inference, where it is the kernel for rows of features.
MadeKernel make_linear_gelu(const KernelRequest& request) {
  if (request.mode != Mode::inference || request.choice == KernelChoice::portable ||
      is_plain_linear(request))
    return MadeKernel(nullptr);
  return make_gemm_linear(request);
}

MadeKernel make_pooling(const KernelRequest& request) {
  const bool there = request.input().layout == Activation::Layout::interleaved;
  const bool portable =
      std::holds_alternative<Pooling>(request.layers[0].spec) && use_portable(request, there);
  return portable ? make_portable_pooling(request) : make_dnnl_pooling(request);
}

MadeKernel make_batch_norm(const KernelRequest& request) {
  return request.choice == KernelChoice::portable ? make_own_batch_norm(request)
                                                  : make_dnnl_batch_norm(request);
}

constexpr KernelEntry<KernelMaker> kKernels[] = {
    {Operation::convolution, DType::f32, make_convolution},
    {Operation::convolution, DType::bf16, make_bf16_convolution},
    {Operation::linear, DType::bf16, make_bf16_linear},
    {Operation::convolution_relu_max_pooling, DType::f32, make_fused_convolution},
    {Operation::convolution_batch_norm_add_relu, DType::f32, make_convolution_run},
    {Operation::convolution_batch_norm_relu, DType::f32, make_convolution_run},
    {Operation::convolution_batch_norm, DType::f32, make_convolution_run},
    {Operation::convolution_relu, DType::f32, make_convolution_run},
    {Operation::linear, DType::f32, make_linear},
    {Operation::linear_gelu, DType::f32, make_linear_gelu},
    {Operation::relu, DType::f32, make_relu},
    {Operation::batch_norm, DType::f32, make_batch_norm},
    {Operation::batch_norm_relu, DType::f32, make_batch_norm},
    {Operation::synchronized_batch_norm, DType::f32, make_own_batch_norm},
    {Operation::synchronized_batch_norm_relu, DType::f32, make_own_batch_norm},
    {Operation::add, DType::f32, make_add},
    {Operation::add_relu, DType::f32, make_add},
    {Operation::max_pooling, DType::f32, make_pooling},
    {Operation::average_pooling, DType::f32, make_pooling},
    {Operation::adaptive_pooling, DType::f32, make_adaptive_pooling},
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
    {Operation::lstm, DType::f32, make_lstm},
    {Operation::custom, DType::f32, make_custom},
};

}  // namespace

KernelMaker find_kernel(Operation operation, DType dtype) noexcept {
  return find_maker<KernelMaker>(kKernels, operation, dtype);
}

MadeKernel make_reorder(const Activation& from, const Activation& to, int threads,
                        SharedScratch& scratch) {
  using Layout = Activation::Layout;
  if (from.layout == Layout::interleaved || to.layout == Layout::interleaved)
    return make_interleave(from, to, threads);
  return make_dnnl_reorder(from, to, threads, scratch);
}

}  // namespace troupe::kernels::cpu
