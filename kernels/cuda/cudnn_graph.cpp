#include "kernels/cuda/internal/cudnn_graph.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace troupe::kernels::cuda {

namespace {

// What the addresses of all tensors are multiples of; buffers give 64.
constexpr std::int64_t kAlignment = 16;

/// How an engine computes that is not taken.
constexpr cudnnBackendNumericalNote_t kRefused[] = {
    CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
    CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
    CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13,
};

bool refuses(cudnnBackendNumericalNote_t note, DType factors) {
  if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) return factors == DType::f32;
  return std::ranges::find(kRefused, note) != std::end(kRefused);
}

Status get(const Descriptor& from, cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type, std::int64_t asked, std::int64_t& count,
           void* values) {
  return check(cudnnBackendGetAttribute(from.get(), name, type, asked, &count, values),
               "cudnnBackendGetAttribute");
}

/// Whether an engine's sums are those of f32, and always the same.
Result<bool> is_exact(const Descriptor& config, DType factors) {
  TROUPE_ASSIGN(const Descriptor engine, Descriptor::create(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  cudnnBackendDescriptor_t handle = engine.get();
  std::int64_t count = 0;
  TROUPE_TRY(
      get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, count, &handle));
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  TROUPE_TRY(get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                 static_cast<std::int64_t>(notes.size()), count, notes.data()));
  const auto end = notes.begin() + std::min<std::ptrdiff_t>(count, std::ssize(notes));
  return std::none_of(notes.begin(), end,
                      [&](cudnnBackendNumericalNote_t note) { return refuses(note, factors); });
}

/// What cuDNN would run a graph with, the one expected to be fastest first.
Result<std::vector<Descriptor>> engine_configs(const Descriptor& graph,
                                               cudnnBackendHeurMode_t mode) {
  TROUPE_ASSIGN(const Descriptor heuristics, DescriptorBuilder(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
                                                 .set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
                                                 .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode)
                                                 .finish());
  std::int64_t count = 0;
  TROUPE_TRY(get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, count,
                 nullptr));
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    TROUPE_ASSIGN(Descriptor config, Descriptor::create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    handles.push_back(config.get());
    configs.push_back(std::move(config));
  }
  TROUPE_TRY(get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 std::ssize(handles), count, handles.data()));
  configs.resize(static_cast<std::size_t>(std::min<std::ptrdiff_t>(count, std::ssize(configs))));
  return configs;
}

/// Whether an error may be of this engine alone, so that the next one is tried. For lack of memory
/// none is left out: which one is taken, and with it the last bits, must not depend on that.
bool is_refusal(const Status& status) {
  return !status.ok() && status.code() != Code::resource_exhausted;
}

}  // namespace

Result<Descriptor> Descriptor::create(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  TROUPE_TRY(check(cudnnBackendCreateDescriptor(type, &made), "cudnnBackendCreateDescriptor"));
  Descriptor descriptor;
  descriptor.handle_.reset(made);
  return descriptor;
}

DescriptorBuilder::DescriptorBuilder(cudnnBackendDescriptorType_t type) {
  auto made = Descriptor::create(type);
  if (made.ok())
    descriptor_ = std::move(made).value();
  else
    status_ = made.status();
}

DescriptorBuilder& DescriptorBuilder::set(cudnnBackendAttributeName_t name,
                                          cudnnBackendAttributeType_t type, std::int64_t count,
                                          const void* values) {
  if (status_.ok())
    status_ = check(cudnnBackendSetAttribute(descriptor_.get(), name, type, count, values),
                    "cudnnBackendSetAttribute");
  return *this;
}

Result<Descriptor> DescriptorBuilder::finish() {
  TROUPE_TRY(status_);
  TROUPE_TRY(check(cudnnBackendFinalize(descriptor_.get()), "cudnnBackendFinalize"));
  return std::move(descriptor_);
}

DescriptorBuilder& DescriptorBuilder::set(cudnnBackendAttributeName_t name,
                                          std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& value : values) handles.push_back(value.get());
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(handles), handles.data());
}

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
  if (is_virtual) builder.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  return builder.finish();
}

Result<GraphPlan> GraphPlan::make(Context& context, Graph graph, ScratchPlaces scratch) {
  GraphPlan made;
  made.graph_ = std::move(graph);
  TROUPE_TRY(context.with_cudnn([&](cudnnHandle_t handle) { return made.make_plan(handle); }));
  made.workspace_ = scratch.add(made.workspace_bytes_);
  return made;
}

Status GraphPlan::make_plan(cudnnHandle_t handle) {
  TROUPE_ASSIGN(finished_, DescriptorBuilder(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
                               .set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle)
                               .set(CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                    std::span<const Descriptor>(graph_.operations))
                               .finish());
  Status refused;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    TROUPE_ASSIGN(const bool found, try_engines(handle, mode, refused));
    if (found) return {};
  }
  std::string message = "cuDNN has no engine for it that is deterministic and adds in f32";
  if (!refused.ok()) message += "; the last that was tried: " + refused.error().message;
  return {Code::not_supported, std::move(message)};
}

Result<bool> GraphPlan::try_engines(cudnnHandle_t handle, cudnnBackendHeurMode_t mode,
                                    Status& refused) {
  auto configs = engine_configs(finished_, mode);
  if (is_refusal(configs.status())) {
    refused = configs.status();
    return false;
  }
  TROUPE_TRY(configs.status());
  for (Descriptor& config : *configs) {
    TROUPE_ASSIGN(const bool exact, is_exact(config, graph_.factors));
    if (!exact) continue;
    auto plan = DescriptorBuilder(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                    .set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle)
                    .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
                    .finish();
    // The heuristics may propose what this device cannot run after all.
    if (is_refusal(plan.status())) {
      refused = plan.status();
      continue;
    }
    TROUPE_TRY(plan.status());
    std::int64_t bytes = 0, count = 0;
    TROUPE_TRY(
        get(*plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, count, &bytes));
    config_ = std::move(config);
    plan_ = std::move(plan).value();
    workspace_bytes_ = static_cast<std::size_t>(bytes);
    return true;
  }
  return false;
}

Status GraphPlan::enqueue(Context& context, cudaStream_t stream, const ScratchPlaces& scratch,
                          std::initializer_list<GraphBinding> bindings) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> addresses;
  for (const GraphBinding& binding : bindings) {
    ids.push_back(binding.id);
    addresses.push_back(binding.data);
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
    return check(cudnnBackendExecute(handle, plan_.get(), pack.get()), "cudnnBackendExecute");
  });
}

}  // namespace troupe::kernels::cuda
