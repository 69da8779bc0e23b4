#include "kernels/cuda/internal/cudnn_graph.hpp"

#include <iterator>
#include <string>
#include <utility>

#include "kernels/cuda/internal/graph_tuning.hpp"

namespace troupe::kernels::cuda {

namespace {
// What the addresses of all tensors are multiples of; buffers give 64.
constexpr std::int64_t kAlignment = 16;
}  // namespace

cudnnDataType_t cudnn_type(DType type) noexcept {
  switch (type) {
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::f16:
      return CUDNN_DATA_HALF;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

Result<Descriptor> GraphTensor::describe() const {
  DescriptorBuilder builder(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  builder.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  if (by_value) builder.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  if (is_virtual) builder.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  return builder.finish();
}

Result<GraphPlan> GraphPlan::make(Context& context, Graph graph, ScratchPlaces scratch,
                                  const GraphTuning* tuning) {
  GraphPlan made;
  made.graph_ = std::move(graph);
  TROUPE_TRY(context.with_cudnn(
      [&](cudnnHandle_t handle) { return made.make_plan(context, handle, tuning); }));
  made.workspace_ = scratch.add(made.plan_.workspace_bytes);
  return made;
}

Status GraphPlan::make_plan(Context& context, cudnnHandle_t handle, const GraphTuning* tuning) {
  TROUPE_ASSIGN(finished_, DescriptorBuilder(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
                               .set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle)
                               .set(CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                    std::span<const Descriptor>(graph_.operations))
                               .finish());
  if (tuning != nullptr && context.engines() != nullptr) {
    TROUPE_ASSIGN(auto tuned, tuned_plan(context, handle, finished_, graph_.factors, *tuning));
    if (tuned) {
      plan_ = std::move(*tuned);
      return {};
    }
  }
  return take_first(handle);
}

Status GraphPlan::take_first(cudnnHandle_t handle) {
  Status refused;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    auto engines = exact_engines(finished_, mode, graph_.factors);
    if (is_refusal(engines.status())) {
      refused = engines.status();
      continue;
    }
    TROUPE_TRY(engines.status());
    for (ExactEngine& engine : *engines) {
      auto plan = EnginePlan::make(handle, std::move(engine));
      // The heuristics may propose what this device cannot run after all.
      if (is_refusal(plan.status())) {
        refused = plan.status();
        continue;
      }
      TROUPE_TRY(plan.status());
      plan_ = std::move(plan).value();
      return {};
    }
  }
  std::string message = "cuDNN has no engine for it that is deterministic and adds in f32";
  if (!refused.ok()) message += "; the last that was tried: " + refused.error().message;
  return {Code::not_supported, std::move(message)};
}

Status GraphPlan::enqueue(Context& context, cudaStream_t stream, const ScratchPlaces& scratch,
                          std::initializer_list<GraphBinding> bindings) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> addresses;
  for (const GraphBinding& binding : bindings) {
    ids.push_back(binding.id);
    addresses.push_back(const_cast<void*>(binding.data));
  }
  void* const workspace = scratch.at(workspace_);
  TROUPE_ASSIGN(const Descriptor pack,
                DescriptorBuilder(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
                    .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
                    .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                         std::ssize(addresses), addresses.data())
                    .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
                    .finish());
  return context.with_cudnn([&](cudnnHandle_t handle) -> Status {
    TROUPE_TRY(check(cudnnSetStream(handle, stream), "cudnnSetStream"));
    return check(cudnnBackendExecute(handle, plan_.plan.get(), pack.get()), "cudnnBackendExecute");
  });
}

}  // namespace troupe::kernels::cuda
