#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cudnn.h>

#include "kernels/cuda/internal/context.hpp"
#include "kernels/cuda/internal/cudnn_descriptor.hpp"
#include "kernels/cuda/internal/cudnn_engines.hpp"
#include "kernels/dtype.hpp"
#include "kernels/internal/shared_scratch.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::cuda {

/// A tensor that a plan reads or writes, or one between two of its operations.
struct GraphTensor {
  std::int64_t id;  ///< by which the plan is given its address
  std::span<const std::int64_t> dims, strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool is_virtual = false;  ///< has no address: only an operation of the same graph reads it
  bool by_value = false;    ///< its address is the host's, and it is read when the plan is enqueued

  Result<Descriptor> describe() const;
};

/// cuDNN's name for a type of floats.
cudnnDataType_t cudnn_type(DType type) noexcept;

/// Address of a tensor for one run.
struct GraphBinding {
  std::int64_t id;
  const void* data;  ///< cuDNN has no const: what is no result is not written
};

/// Operations that are run as one.
struct Graph {
  std::vector<Descriptor> operations;
  std::vector<Descriptor> parts;  ///< what they refer to
  /// What is multiplied: of 16 bits, tensor cores may do it; of f32 that would be TF32.
  DType factors = DType::f32;
};

/// What is needed to measure a graph's engines: the name of what it computes, for the file of
/// engines, and the bytes of its tensors.
struct GraphTuning {
  struct Tensor {
    std::int64_t id;
    std::size_t bytes;
  };
  std::string name;
  std::vector<Tensor> tensors;
};

/// A graph with an engine that was picked for it.
///
/// Engines are taken in the order of cuDNN's heuristics (mode A, then its fallbacks), but for those
/// that are not exact. With a `tuning` the context's file of engines has a say before that.
///
/// Ownership: the descriptors that it was made of; borrows context and scratch.
/// Threads: one at a time.
class GraphPlan {
public:
  GraphPlan() = default;
  /// Its workspace lies behind the places that `scratch` has, where other plans' may be too.
  /// Errors: `not_supported` if no engine is left; as `check`.
  static Result<GraphPlan> make(Context& context, Graph graph, ScratchPlaces scratch,
                                const GraphTuning* tuning = nullptr);

  Status enqueue(Context& context, cudaStream_t stream, const ScratchPlaces& scratch,
                 std::initializer_list<GraphBinding> bindings) const;

private:
  Status make_plan(Context& context, cudnnHandle_t handle, const GraphTuning* tuning);
  Status take_first(cudnnHandle_t handle);

  Graph graph_;
  Descriptor finished_;
  EnginePlan plan_;
  std::size_t workspace_ = 0;  ///< in the scratch
};

}  // namespace troupe::kernels::cuda
