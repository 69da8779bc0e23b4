#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <cudnn.h>

#include "kernels/cuda/internal/context.hpp"
#include "kernels/dtype.hpp"
#include "kernels/internal/shared_scratch.hpp"
#include "runtime/base/status.hpp"

// cuDNN's graph API: descriptors are made, given attributes and finalized, and a plan of a graph of
// operations is run on addresses (cuDNN documentation, "Graph API", cudnnBackend...).
namespace troupe::kernels::cuda {

/// A descriptor. Of those that it refers to cuDNN wants that they live as long.
class Descriptor {
public:
  Descriptor() = default;
  /// One without attributes, for cuDNN to fill in.
  static Result<Descriptor> create(cudnnBackendDescriptorType_t type);
  cudnnBackendDescriptor_t get() const noexcept { return handle_.get(); }

private:
  friend class DescriptorBuilder;
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t it) const noexcept {
      static_cast<void>(cudnnBackendDestroyDescriptor(it));
    }
  };
  std::unique_ptr<std::remove_pointer_t<cudnnBackendDescriptor_t>, Destroy> handle_;
};

/// Makes a descriptor: attributes one after the other, then finish(), which gives the first error.
class DescriptorBuilder {
public:
  explicit DescriptorBuilder(cudnnBackendDescriptorType_t type);

  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         std::int64_t count, const void* values);
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    return set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, std::int64_t value) {
    return set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, float value) {
    return set(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, bool value) {
    return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value) {
    return set(name, CUDNN_TYPE_POINTWISE_MODE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value) {
    return set(name, CUDNN_TYPE_CONVOLUTION_MODE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
    return set(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
    return set(name, CUDNN_TYPE_HANDLE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    const cudnnBackendDescriptor_t handle = value.get();
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  }

  DescriptorBuilder& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);

  Result<Descriptor> finish();

private:
  Status status_;
  Descriptor descriptor_;
};

/// A tensor that a plan reads or writes, or one between two of its operations.
struct GraphTensor {
  std::int64_t id;  ///< by which the plan is given its address
  std::span<const std::int64_t> dims, strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool is_virtual = false;  ///< has no address: only an operation of the same graph reads it

  Result<Descriptor> describe() const;
};

/// cuDNN's name for a type of floats.
cudnnDataType_t cudnn_type(DType type) noexcept;

/// Address of a tensor for one run.
struct GraphBinding {
  std::int64_t id;
  void* data;
};

/// Operations that are run as one.
struct Graph {
  std::vector<Descriptor> operations;
  std::vector<Descriptor> parts;  ///< what they refer to
  /// What is multiplied: of 16 bits, tensor cores may do it; of f32 that would be TF32.
  DType factors = DType::f32;
};

/// A graph with an engine that was picked for it.
///
/// Engines are asked for by cuDNN's heuristics (mode A, then its fallbacks) and taken in its order,
/// except those whose numerical notes say that they are not deterministic, or that they compute in
/// less than f32 (inputs or sums in lower precision, Winograd's larger tiles; tensor cores on f32).
///
/// Ownership: the descriptors that it was made of; borrows context and scratch.
/// Threads: one at a time.
class GraphPlan {
public:
  GraphPlan() = default;
  /// Its workspace lies behind the places that `scratch` has, where other plans' may be too.
  /// Errors: `not_supported` if no engine is left; as `check`.
  static Result<GraphPlan> make(Context& context, Graph graph, ScratchPlaces scratch);

  Status enqueue(Context& context, cudaStream_t stream, const ScratchPlaces& scratch,
                 std::initializer_list<GraphBinding> bindings) const;

private:
  Status make_plan(cudnnHandle_t handle);
  /// Takes the first engine of the mode's that will do; false if there is none, and why not.
  Result<bool> try_engines(cudnnHandle_t handle, cudnnBackendHeurMode_t mode, Status& refused);

  Graph graph_;
  Descriptor finished_, config_, plan_;
  std::size_t workspace_bytes_ = 0;
  std::size_t workspace_ = 0;  ///< in the scratch
};

}  // namespace troupe::kernels::cuda
