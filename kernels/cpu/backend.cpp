#include "kernels/cpu/internal/backend.hpp"

namespace troupe::kernels::cpu {

namespace {

struct Entry {
  Operation operation;
  DType dtype;
  KernelMaker maker;
};

constexpr Entry kKernels[] = {
    {Operation::convolution, DType::f32, make_dnnl_convolution},
    {Operation::linear, DType::f32, make_dnnl_linear},
    {Operation::relu, DType::f32, make_relu},
    {Operation::max_pooling, DType::f32, make_dnnl_pooling},
    {Operation::average_pooling, DType::f32, make_dnnl_pooling},
};

}  // namespace

KernelMaker find_kernel(Operation operation, DType dtype) noexcept {
  for (const Entry& entry : kKernels)
    if (entry.operation == operation && entry.dtype == dtype) return entry.maker;
  return nullptr;
}

MadeKernel make_reorder(const Activation& from, const Activation& to, int threads) {
  return make_dnnl_reorder(from, to, threads);
}

}  // namespace troupe::kernels::cpu
