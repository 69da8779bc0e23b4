#include "kernels/cuda/internal/cudnn_engines.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cuda/internal/context.hpp"

namespace troupe::kernels::cuda {

namespace {

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

/// Whether an engine's sums are those of f32, and always the same.
Result<bool> is_exact(const Descriptor& engine, DType factors) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  std::int64_t count = 0;
  TROUPE_TRY(engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                         std::ssize(notes), count, notes.data()));
  const auto end = notes.begin() + std::min<std::ptrdiff_t>(count, std::ssize(notes));
  return std::none_of(notes.begin(), end,
                      [&](cudnnBackendNumericalNote_t note) { return refuses(note, factors); });
}

Result<std::vector<Descriptor>> engine_configs(const Descriptor& graph,
                                               cudnnBackendHeurMode_t mode) {
  TROUPE_ASSIGN(const Descriptor heuristics, DescriptorBuilder(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
                                                 .set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
                                                 .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode)
                                                 .finish());
  std::int64_t count = 0;
  TROUPE_TRY(heuristics.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, count,
                             nullptr));
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    TROUPE_ASSIGN(Descriptor config, Descriptor::create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    handles.push_back(config.get());
    configs.push_back(std::move(config));
  }
  TROUPE_TRY(heuristics.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                             std::ssize(handles), count, handles.data()));
  configs.resize(static_cast<std::size_t>(std::min<std::ptrdiff_t>(count, std::ssize(configs))));
  return configs;
}

}  // namespace

Result<std::vector<ExactEngine>> exact_engines(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                               DType factors) {
  TROUPE_ASSIGN(auto configs, engine_configs(graph, mode));
  std::vector<ExactEngine> engines;
  for (Descriptor& config : configs) {
    TROUPE_ASSIGN(const Descriptor engine, Descriptor::create(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
    cudnnBackendDescriptor_t handle = engine.get();
    std::int64_t count = 0, number = 0;
    TROUPE_TRY(
        config.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, count, &handle));
    TROUPE_ASSIGN(const bool exact, is_exact(engine, factors));
    if (!exact) continue;
    TROUPE_TRY(engine.read(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, count, &number));
    engines.push_back({std::move(config), number});
  }
  return engines;
}

Result<EnginePlan> EnginePlan::make(cudnnHandle_t handle, ExactEngine engine) {
  EnginePlan made;
  TROUPE_ASSIGN(made.plan, DescriptorBuilder(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                               .set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle)
                               .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.config)
                               .finish());
  std::int64_t bytes = 0, count = 0;
  TROUPE_TRY(
      made.plan.read(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, count, &bytes));
  made.config = std::move(engine.config);
  made.workspace_bytes = static_cast<std::size_t>(bytes);
  return made;
}

bool is_refusal(const Status& status) {
  return !status.ok() && status.code() != Code::resource_exhausted;
}

}  // namespace troupe::kernels::cuda
