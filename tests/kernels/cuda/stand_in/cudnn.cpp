#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include <cudnn.h>

#include "tests/kernels/cuda/stand_in/convolution.hpp"
#include "tests/kernels/cuda/stand_in/graph.hpp"
#include "tests/kernels/cuda/stand_in/stand_in.hpp"
#include "tests/kernels/cuda/stand_in/stream.hpp"

using namespace troupe::stand_in;  // NOLINT

namespace {

struct Attribute {
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  std::vector<std::byte> bytes;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes = {};
  std::int64_t engine = -1;  ///< of an engine and what is made of one
};

Descriptor* of(cudnnBackendDescriptor_t it) {
  return static_cast<Descriptor*>(it);
}

/// What an attribute must be: its type, and how many, or kAny for any number from 1; and whether it
/// must be there.
struct Rule {
  cudnnBackendDescriptorType_t descriptor;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  bool optional = false;
};
constexpr std::int64_t kAny = -1;

#define TROUPE_CONVOLUTION_RULES(kind, name, x, w, y)                                          \
  {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                    \
   CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_ALPHA, CUDNN_TYPE_FLOAT, 1},                      \
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                \
       CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_BETA, CUDNN_TYPE_FLOAT, 1},                   \
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                \
       CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1}, \
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                \
       CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},       \
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                \
       CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},       \
  {                                                                                            \
    CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                   \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1        \
  }

constexpr Rule kRules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, true},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
     CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
     1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
     1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     CUDNN_TYPE_CONVOLUTION_MODE, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
     2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64,
     2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
     2},
    TROUPE_CONVOLUTION_RULES(FORWARD, FORWARD, X, W, Y),
    TROUPE_CONVOLUTION_RULES(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    TROUPE_CONVOLUTION_RULES(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
     1},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, kAny},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
     1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
     kAny},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR, kAny},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
     1},
};

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 4;  // enums and float
  }
}

template <class T>
std::vector<T> values(const Descriptor& from, cudnnBackendAttributeName_t name) {
  const Attribute& attribute = from.attributes.at(name);
  std::vector<T> all(static_cast<std::size_t>(attribute.count));
  std::memcpy(all.data(), attribute.bytes.data(), attribute.bytes.size());
  return all;
}
template <class T>
T value(const Descriptor& from, cudnnBackendAttributeName_t name) {
  return values<T>(from, name).at(0);
}
std::vector<const Descriptor*> parts(const Descriptor& from, cudnnBackendAttributeName_t name) {
  std::vector<const Descriptor*> all;
  for (void* const it : values<void*>(from, name)) all.push_back(static_cast<Descriptor*>(it));
  return all;
}
const Descriptor& part(const Descriptor& from, cudnnBackendAttributeName_t name) {
  return *parts(from, name).at(0);
}

bool flag(const Descriptor& from, cudnnBackendAttributeName_t name) {
  return from.attributes.contains(name) && value<std::uint8_t>(from, name) != 0;
}

Tensor tensor_of(const Descriptor& from) {
  return {value<std::int64_t>(from, CUDNN_ATTR_TENSOR_UNIQUE_ID),
          value<cudnnDataType_t>(from, CUDNN_ATTR_TENSOR_DATA_TYPE),
          value<std::int64_t>(from, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
          values<std::int64_t>(from, CUDNN_ATTR_TENSOR_DIMENSIONS),
          values<std::int64_t>(from, CUDNN_ATTR_TENSOR_STRIDES),
          flag(from, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
          flag(from, CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
}

GraphOperation operation_of(const Descriptor& from) {
  GraphOperation made;
  made.type = from.type;
  const auto input = [&](cudnnBackendAttributeName_t name) {
    if (from.attributes.contains(name)) made.inputs.push_back(tensor_of(part(from, name)));
  };
  const auto output = [&](cudnnBackendAttributeName_t name) {
    made.output = tensor_of(part(from, name));
  };
  switch (from.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      input(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
      input(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
      output(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      made.reduction = value<cudnnReduceTensorOp_t>(part(from, CUDNN_ATTR_OPERATION_REDUCTION_DESC),
                                                    CUDNN_ATTR_REDUCTION_OPERATOR);
      input(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
      output(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
      break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      input(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
      output(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
      break;
    default: {
      const Descriptor& kind = part(from, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      made.pointwise = value<cudnnPointwiseMode_t>(kind, CUDNN_ATTR_POINTWISE_MODE);
      if (kind.attributes.contains(CUDNN_ATTR_POINTWISE_AXIS))
        made.axis = value<std::int64_t>(kind, CUDNN_ATTR_POINTWISE_AXIS);
      input(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
      input(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
      input(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
      output(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    }
  }
  return made;
}

/// What an operation's descriptor says.
ConvolutionPlanned convolution_of(const Descriptor& operation) {
  struct Names {
    cudnnBackendAttributeName_t convolution, x, weight, y, alpha, beta;
  } names{};
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      names = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      names = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
      break;
    default:
      names = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  const Descriptor& windows = part(operation, names.convolution);
  ConvolutionPlanned planned;
  planned.type = operation.type;
  planned.x = tensor_of(part(operation, names.x));
  planned.weight = tensor_of(part(operation, names.weight));
  planned.y = tensor_of(part(operation, names.y));
  planned.compute = value<cudnnDataType_t>(windows, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  planned.mode = value<cudnnConvolutionMode_t>(windows, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
  planned.strides = values<std::int64_t>(windows, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  planned.dilations = values<std::int64_t>(windows, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  planned.pre_paddings = values<std::int64_t>(windows, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  planned.post_paddings = values<std::int64_t>(windows, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  planned.alpha = value<float>(operation, names.alpha);
  planned.beta = value<float>(operation, names.beta);
  return planned;
}

/// A graph of a convolution, and of a copy of its result.
ConvolutionPlanned convolution_of(const std::vector<const Descriptor*>& operations) {
  ConvolutionPlanned planned = convolution_of(*operations.at(0));
  if (operations.size() < 2) return planned;
  const Descriptor& copy = *operations[1];
  const Tensor from = tensor_of(part(copy, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
  const auto mode = value<cudnnPointwiseMode_t>(
      part(copy, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), CUDNN_ATTR_POINTWISE_MODE);
  const bool is_of_result = std::ranges::any_of(
      std::array{&planned.x, &planned.weight, &planned.y},
      [&](const Tensor* tensor) { return tensor->is_virtual && tensor->id == from.id; });
  if (mode == CUDNN_POINTWISE_IDENTITY && is_of_result)
    planned.copy = tensor_of(part(copy, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  return planned;
}

/// The operations that a plan, or what it is made of, is for.
std::vector<const Descriptor*> operations_of(const Descriptor& any) {
  switch (any.type) {
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return operations_of(part(any, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return operations_of(part(any, CUDNN_ATTR_ENGINECFG_ENGINE));  // kept as the graph, below
    default:
      return parts(any, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  }
}

bool is_convolution(const Descriptor& operation) {
  return operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}
std::vector<GraphOperation> graph_of(const std::vector<const Descriptor*>& operations) {
  std::vector<GraphOperation> graph;
  for (const Descriptor* operation : operations) graph.push_back(operation_of(*operation));
  return graph;
}

/// Without engines in the behaviour: one that will do.
std::vector<std::vector<cudnnBackendNumericalNote_t>> engines() {
  if (!behaviour().engines.empty()) return behaviour().engines;
  return {{}};
}

cudnnStatus_t finalize_plan(Descriptor& plan) {
  const Descriptor& config = part(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (std::ranges::find(behaviour().unsupported_engines, config.engine) !=
      behaviour().unsupported_engines.end())
    return CUDNN_STATUS_NOT_SUPPORTED;
  plan.engine = config.engine;
  const auto operations = operations_of(plan);
  if (!is_convolution(*operations.at(0))) {
    auto graph = graph_of(operations);
    if (!behaviour().graphs_supported || !fits(graph)) return CUDNN_STATUS_NOT_SUPPORTED;
    record().graphs.push_back(std::move(graph));
    return CUDNN_STATUS_SUCCESS;
  }
  ConvolutionPlanned planned = convolution_of(operations);
  planned.engine = config.engine;
  if (!fits(planned)) return CUDNN_STATUS_BAD_PARAM;
  if (planned.copy && !behaviour().rounded_convolutions_supported)
    return CUDNN_STATUS_NOT_SUPPORTED;
  record().convolutions.push_back(planned);
  return CUDNN_STATUS_SUCCESS;
}

/// The stream that a handle works in.
cudaStream_t* stream_of(cudnnHandle_t handle) {
  return reinterpret_cast<cudaStream_t*>(handle);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(new cudaStream_t(nullptr));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete stream_of(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (handle == nullptr || stream == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *stream_of(handle) = stream;
  return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t) {
  return "as the stand-in was told";
}
void cudnnGetLastErrorString(char* message, size_t bytes) {
  std::strncpy(message, "the reason", bytes);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  *made = new Descriptor{type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t it) {
  delete of(it);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t it,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* from) {
  Descriptor& descriptor = *of(it);
  const auto rule = std::ranges::find_if(
      kRules, [&](const Rule& r) { return r.descriptor == descriptor.type && r.name == name; });
  if (descriptor.finalized || rule == std::end(kRules) || rule->type != type || count < 1 ||
      (rule->count != kAny && rule->count != count))
    return CUDNN_STATUS_BAD_PARAM;
  for (std::int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; ++i)
    if (!static_cast<Descriptor* const*>(from)[i]->finalized) return CUDNN_STATUS_BAD_PARAM;
  Attribute attribute{type, count, {}};
  attribute.bytes.resize(size_of(type) * static_cast<std::size_t>(count));
  std::memcpy(attribute.bytes.data(), from, attribute.bytes.size());
  descriptor.attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t it) {
  Descriptor& descriptor = *of(it);
  if (descriptor.finalized) return CUDNN_STATUS_BAD_PARAM;
  for (const Rule& rule : kRules)
    if (rule.descriptor == descriptor.type && !rule.optional &&
        !descriptor.attributes.contains(rule.name))
      return CUDNN_STATUS_BAD_PARAM;
  if (descriptor.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && !behaviour().heuristics_supported &&
      value<cudnnBackendHeurMode_t>(descriptor, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A)
    return CUDNN_STATUS_NOT_SUPPORTED;
  if (descriptor.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const cudnnStatus_t made = finalize_plan(descriptor);
    if (made != CUDNN_STATUS_SUCCESS) return made;
  }
  descriptor.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const it,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t asked,
                                       int64_t* count, void* to) {
  const Descriptor& from = *of(it);
  if (!from.finalized) return CUDNN_STATUS_BAD_PARAM;
  const auto all = engines();
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      *count = static_cast<int64_t>(all.size());
      for (int64_t i = 0; i < std::min(asked, *count); ++i) {
        Descriptor& config = *static_cast<Descriptor**>(to)[i];
        if (config.type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || config.finalized)
          return CUDNN_STATUS_BAD_PARAM;
        config.engine = i;
        config.finalized = true;
        config.attributes[CUDNN_ATTR_ENGINECFG_ENGINE] =
            from.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Descriptor& engine = **static_cast<Descriptor**>(to);
      if (asked != 1 || engine.type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
        return CUDNN_STATUS_BAD_PARAM;
      engine.engine = from.engine;
      engine.finalized = true;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      if (type != CUDNN_TYPE_INT64 || asked != 1) return CUDNN_STATUS_BAD_PARAM;
      *static_cast<int64_t*>(to) = behaviour().first_engine + from.engine;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      const auto& notes = all.at(static_cast<std::size_t>(from.engine));
      *count = static_cast<int64_t>(notes.size());
      if (type != CUDNN_TYPE_NUMERICAL_NOTE || asked < *count) return CUDNN_STATUS_BAD_PARAM;
      std::ranges::copy(notes, static_cast<cudnnBackendNumericalNote_t*>(to));
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      if (type != CUDNN_TYPE_INT64 || asked != 1) return CUDNN_STATUS_BAD_PARAM;
      *static_cast<int64_t*>(to) = kWorkspace;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    default:
      return CUDNN_STATUS_BAD_PARAM;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  if (handle == nullptr || *stream_of(handle) == nullptr || !of(plan)->finalized ||
      !of(pack)->finalized)
    return CUDNN_STATUS_BAD_PARAM;
  const auto ids = values<std::int64_t>(*of(pack), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto addresses = values<void*>(*of(pack), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto address = [ids, addresses](const Tensor& tensor) -> void* {
    const auto found = std::ranges::find(ids, tensor.id);
    if (found == ids.end()) return nullptr;
    void* const data = addresses[static_cast<std::size_t>(found - ids.begin())];
    // One by value is where the host has it.
    const auto alignment = static_cast<std::size_t>(tensor.by_value ? 4 : tensor.alignment);
    return reinterpret_cast<std::uintptr_t>(data) % alignment == 0 ? data : nullptr;
  };
  void* const workspace = value<void*>(*of(pack), CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (workspace == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const auto in_stream = [&](const auto& compute) {
    return enqueue(*stream_of(handle),
                   [workspace, engine = of(plan)->engine, compute] {
                     std::memset(workspace, 0xff, kWorkspace);
                     record().last_engine = engine;
                     return compute();
                   })
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_BAD_PARAM;
  };
  const auto operations = operations_of(*of(plan));
  if (!is_convolution(*operations.at(0)))
    return in_stream([graph = graph_of(operations), address] {
      ++record().graph_calls;
      return run(graph, address);
    });
  const ConvolutionPlanned planned = convolution_of(operations);
  const auto data = [&](const Tensor& tensor) {
    return address(tensor.is_virtual ? *planned.copy : tensor);
  };
  void *const x = data(planned.x), *const weight = data(planned.weight), *const y = data(planned.y);
  if (x == nullptr || weight == nullptr || y == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return in_stream([planned, x, weight, y] {
    ++record().convolution_calls;
    convolve(planned, x, weight, y);
    return true;
  });
}
}
